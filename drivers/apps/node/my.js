// JavaScript's frameworks on MySQL and MariaDB, as their users run them.
'use strict';

const fs = require('node:fs');
const { where } = require('./apps.js');
const pg = require('./pg.js');

const server = { host: where.host, port: where.port, user: where.user, password: where.password };

function describe(error) {
  const under = error.cause || error;
  return [error.constructor.name, under.code || null, under.errno || null, under.sqlState || null, String(under.sqlMessage || under.message)];
}

// Ends statements from a connection that is there already: behind Weir a new one could wait for a server with its login.
let killer;

async function killQuery(number) {
  await (await killer).query(`KILL QUERY ${number}`);
}

// mysql2: query() sends text, execute() prepares and keeps what it has prepared.
class Mysql2 {
  constructor(who) {
    this.who = who;
  }

  async open() {
    this.db = await require('mysql2/promise').createConnection({ ...server, database: this.who.schema, charset: 'utf8mb4', infileStreamFactory: (file) => fs.createReadStream(file) });
    this.db.on('error', () => {});
    await this.db.query(`SET time_zone = '${this.who.offset}', sql_mode = '${this.who.sql_mode}'`);
    this.number = this.db.threadId;
    killer = killer || require('mysql2/promise').createConnection(server);
    await killer;
  }

  async close() {
    await this.db.end();
  }

  describe(error) {
    return describe(error);
  }

  async execute(sql, params) {
    const [result] = await this.db.query(sql, params);
    return result.affectedRows === undefined ? result : [result.affectedRows, result.insertId, result.warningStatus];
  }

  async query(sql, params) {
    return (await this.db.query({ sql, rowsAsArray: true }, params))[0];
  }

  async prepared(sql, params) {
    return (await this.db.execute({ sql, rowsAsArray: true }, params))[0];
  }

  async transaction(body, commit) {
    await this.db.beginTransaction();
    await body();
    await (commit ? this.db.commit() : this.db.rollback());
  }

  async savepoint(body, release) {
    await this.db.query('SAVEPOINT apps');
    await body();
    await this.db.query(release ? 'RELEASE SAVEPOINT apps' : 'ROLLBACK TO SAVEPOINT apps');
  }

  stream(sql) {
    return this.db.connection.query(sql).stream();
  }

  load(sql, file) {
    return this.db.query({ sql, infileStreamFactory: () => fs.createReadStream(file) }).then(([r]) => [r.affectedRows, r.info]);
  }

  cancel() {
    return killQuery(this.number);
  }
}

// Knex over mysql2.
class Knex extends pg.Knex {
  async open() {
    this.knex = require('knex')({
      client: 'mysql2', connection: { ...server, database: this.who.schema, charset: 'utf8mb4' },
      pool: { min: 1, max: 1, afterCreate: (db, done) => db.query(`SET time_zone = '${this.who.offset}', sql_mode = '${this.who.sql_mode}'`, (e) => done(e, db)) },
    });
    this.levels = [this.knex];
    await this.knex.raw('SELECT 1');
  }

  describe(error) {
    return describe(error);
  }

  async execute(sql, params) {
    const [result] = await this.db.raw(sql, params);
    return [result.affectedRows, result.insertId];
  }

  async query(sql, params) {
    const [rows] = await this.db.raw(sql, params);
    return Array.isArray(rows) ? rows.map((row) => Object.values(row)) : rows;
  }
}

// Drizzle over mysql2.
class Drizzle extends pg.Drizzle {
  async open() {
    this.pool = require('mysql2/promise').createPool({ ...server, database: this.who.schema, charset: 'utf8mb4', connectionLimit: 1 });
    this.levels = [require('drizzle-orm/mysql2').drizzle({ client: this.pool })];
    await this.query(`SET time_zone = '${this.who.offset}', sql_mode = '${this.who.sql_mode}'`, []);
  }

  describe(error) {
    return describe(error);
  }

  build(text, params) {
    return super.build(text.replaceAll('?', '$1'), params);
  }

  async execute(sql, params) {
    const [result] = await this.db.execute(this.build(sql, params));
    return [result.affectedRows, result.insertId];
  }

  async query(sql, params) {
    const [rows] = await this.db.execute(this.build(sql, params));
    return Array.isArray(rows) ? rows.map((row) => Object.values(row)) : rows;
  }

  async *stream(sql) {
    yield* (await this.db.execute(this.build(sql, [])))[0];
  }

  async orm() {
    const d = require('drizzle-orm');
    const m = require('drizzle-orm/mysql-core');
    const authors = m.mysqlTable('authors', { id: m.serial('id').primaryKey(), name: m.varchar('name', { length: 100 }).notNull().unique() });
    const books = m.mysqlTable('books', { id: m.serial('id').primaryKey(), authorId: m.int('author_id').notNull(), price: m.decimal('price').default('1') });
    await this.execute('CREATE TABLE authors (id serial PRIMARY KEY, name varchar(100) NOT NULL UNIQUE)', []);
    await this.execute('CREATE TABLE books (id serial PRIMARY KEY, author_id int NOT NULL, price decimal(10, 2) DEFAULT 1)', []);
    const seen = [await this.db.insert(authors).values([0, 1, 2].map((n) => ({ name: `${this.who.application} ${n}` }))).$returningId()];
    const made = await this.db.select().from(authors).orderBy(authors.id);
    await this.db.transaction(async (tx) => {
      for (const author of made) await tx.insert(books).values([{ authorId: author.id }, { authorId: author.id, price: '2.5' }]);
    });
    seen.push(made, await this.db.select({ name: authors.name, n: d.count(books.id) }).from(authors).leftJoin(books, d.eq(books.authorId, authors.id))
      .groupBy(authors.name).orderBy(authors.name));
    const byName = this.db.select().from(authors).where(d.eq(authors.name, d.sql.placeholder('name'))).prepare();
    for (const { name } of made) seen.push(await byName.execute({ name }));
    seen.push((await this.db.delete(authors).where(d.eq(authors.name, made[2].name)))[0].affectedRows);
    await this.execute('DROP TABLE books', []);
    await this.execute('DROP TABLE authors', []);
    return seen;
  }
}

module.exports = { Mysql2, Knex, Drizzle };
