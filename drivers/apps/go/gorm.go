package main

import (
	"context"
	"errors"

	"gorm.io/gorm"
	"gorm.io/gorm/clause"
	"gorm.io/gorm/logger"
)

type author struct {
	ID    uint
	Name  string `gorm:"uniqueIndex;size:100;not null"`
	Books []book `gorm:"foreignKey:AuthorID"`
}
type book struct {
	ID       uint
	AuthorID uint
	Title    string  `gorm:"size:100"`
	Price    float64 `gorm:"type:decimal(10,2)"`
}

func (author) TableName() string { return "authors" }
func (book) TableName() string   { return "books" }

func (c *gormClient) at() *gorm.DB {
	return c.levels[len(c.levels)-1]
}

func (c *gormClient) open() (err error) {
	if c.gorm, err = gorm.Open(c.dialect(c.who), &gorm.Config{Logger: logger.Discard}); err != nil {
		return err
	}
	if c.db, err = c.gorm.DB(); err != nil {
		return err
	}
	c.db.SetMaxOpenConns(1)
	c.levels = []*gorm.DB{c.gorm}
	return nil
}

func (c *gormClient) execute(text string, params []any) (any, error) {
	done := c.at().Exec(text, params...)
	return done.RowsAffected, done.Error
}

func (c *gormClient) query(text string, params []any) ([][]any, error) {
	return collect(c.at().Raw(text, params...).Rows())
}

func (c *gormClient) prepared(text string, params []any) ([][]any, error) {
	return collect(c.gorm.Session(&gorm.Session{PrepareStmt: true}).Raw(text, params...).Rows())
}

func (c *gormClient) transaction(body func(), commit bool) error {
	err := c.at().Transaction(func(tx *gorm.DB) error {
		c.levels = append(c.levels, tx)
		defer func() { c.levels = c.levels[:len(c.levels)-1] }()
		body()
		if !commit {
			return errRollback
		}
		return nil
	})
	if errors.Is(err, errRollback) {
		return nil
	}
	return err
}

func (c *gormClient) savepoint(body func(), release bool) error { return c.transaction(body, release) }

func (c *gormClient) cancelled(ctx context.Context, text string) error {
	_, err := collect(c.gorm.WithContext(ctx).Raw(text).Rows())
	return err
}

func (c *gormClient) orm() (any, error) {
	db := c.gorm
	if err := db.AutoMigrate(&author{}, &book{}); err != nil {
		return nil, err
	}
	seen := []any{db.Migrator().HasTable("books"), db.Migrator().HasColumn(&book{}, "none")}
	for n := range 3 {
		name := c.Application + " " + string(rune('0'+n))
		if err := db.Create(&author{Name: name, Books: []book{{Title: "a", Price: 1}, {Title: "b", Price: 2.5}}}).Error; err != nil {
			return nil, err
		}
	}
	var all []author
	if err := db.Preload("Books").Order("name").Find(&all).Error; err != nil {
		return nil, err
	}
	for _, a := range all {
		seen = append(seen, a.Name, len(a.Books), a.Books[0].Title)
	}
	seen = append(seen, c.describe(db.Create(&author{Name: all[0].Name}).Error))
	seen = append(seen, db.Clauses(clause.OnConflict{DoNothing: true}).Create(&author{Name: all[0].Name}).RowsAffected)
	seen = append(seen, db.Model(&book{}).Where("price > ?", 2).Update("price", gorm.Expr("price * 2")).RowsAffected)
	var sum float64
	if err := db.Model(&book{}).Select("sum(price)").Scan(&sum).Error; err != nil {
		return nil, err
	}
	seen = append(seen, sum)
	err := db.Transaction(func(tx *gorm.DB) error {
		var locked author
		if err := tx.Clauses(clause.Locking{Strength: "UPDATE"}).First(&locked, "name = ?", all[1].Name).Error; err != nil {
			return err
		}
		seen = append(seen, locked.Name)
		return tx.Delete(&book{}, "author_id = ?", locked.ID).Error
	})
	if err != nil {
		return nil, err
	}
	var left int64
	db.Model(&book{}).Count(&left)
	return append(seen, left), db.Migrator().DropTable(&book{}, &author{})
}
