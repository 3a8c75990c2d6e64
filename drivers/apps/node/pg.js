// JavaScript's frameworks on PostgreSQL, as their users run them.
'use strict';

const { where, Rollback } = require('./apps.js');

const options = (who) => `-c search_path=${who.schema} -c TimeZone=${who.zone}`;
const server = { host: where.host, port: where.port, user: where.user, password: where.password, database: where.database, ssl: false };

function describe(error) {
  const under = error.cause || error;
  return [error.constructor.name, under.code || null, String(under.message).split('\n')[0]];
}


// node-postgres: a client, text and named statements.
class Pg {
  constructor(who) {
    this.who = who;
  }

  async open() {
    const { Client } = require('pg');
    this.db = new Client({ ...server, options: options(this.who), application_name: this.who.application });
    this.db.on('error', () => {});
    await this.db.connect();
  }

  async close() {
    await this.db.end();
  }

  describe(error) {
    return describe(error);
  }

  async execute(sql, params) {
    return (await this.db.query({ text: sql, values: params })).rowCount;
  }

  async query(sql, params) {
    return (await this.db.query({ text: sql, values: params, rowMode: 'array' })).rows;
  }

  async prepared(sql, params) {
    const name = `s${Buffer.from(sql).toString('base64').slice(-40)}`;
    return (await this.db.query({ name, text: sql, values: params, rowMode: 'array' })).rows;
  }

  async transaction(body, commit) {
    await this.db.query('BEGIN');
    await body();
    await this.db.query(commit ? 'COMMIT' : 'ROLLBACK');
  }

  async savepoint(body, release) {
    await this.db.query('SAVEPOINT apps');
    await body();
    await this.db.query(release ? 'RELEASE SAVEPOINT apps' : 'ROLLBACK TO SAVEPOINT apps');
  }

  async *stream(sql) {
    const Cursor = require('pg-cursor');
    const cursor = this.db.query(new Cursor(sql));
    for (;;) {
      const rows = await cursor.read(500);
      if (!rows.length) break;
      yield* rows;
    }
    await cursor.close();
  }

  async copyIn(sql, text) {
    const { from } = require('pg-copy-streams');
    const stream = this.db.query(from(sql));
    await new Promise((yes, no) => stream.on('finish', yes).on('error', no).end(text));
    return stream.rowCount;
  }

  async copyOut(sql) {
    const { to } = require('pg-copy-streams');
    const parts = [];
    for await (const part of this.db.query(to(sql))) parts.push(part);
    return Buffer.concat(parts).toString();
  }

  async listen(channel, payload) {
    await this.db.query(`LISTEN ${channel}`);
    const heard = new Promise((yes) => this.db.once('notification', (n) => yes(n.payload)));
    await this.db.query('SELECT pg_notify($1, $2)', [channel, payload]);
    const said = await heard;
    await this.db.query(`UNLISTEN ${channel}`);
    return [said];
  }
}

// Knex: its searchPath, a SET in afterCreate, its transactions, its schema builder.
class Knex {
  constructor(who) {
    this.who = who;
  }

  async open() {
    this.knex = require('knex')({
      client: 'pg', connection: { ...server, application_name: this.who.application }, searchPath: [this.who.schema],
      pool: { min: 1, max: 1, afterCreate: (db, done) => db.query(`SET timezone = '${this.who.zone}'`, (e) => done(e, db)) },
    });
    this.levels = [this.knex];
    await this.knex.raw('SELECT 1');
  }

  get db() {
    return this.levels.at(-1);
  }

  async close() {
    await this.knex.destroy();
  }

  describe(error) {
    return describe(error);
  }

  async execute(sql, params) {
    return (await this.db.raw(sql, params)).rowCount;
  }

  async query(sql, params) {
    return (await this.db.raw(sql, params)).rows.map((row) => Object.values(row));
  }

  prepared(sql, params) {
    return this.query(sql, params);
  }

  async transaction(body, commit) {
    try {
      await this.db.transaction(async (inner) => {
        this.levels.push(inner);
        try {
          await body();
          if (!commit) throw new Rollback();
        } finally {
          this.levels.pop();
        }
      });
    } catch (e) {
      if (!(e instanceof Rollback)) throw e;
    }
  }

  savepoint(body, release) {
    return this.transaction(body, release);
  }

  stream(sql) {
    return this.db.raw(sql).stream();
  }

  orm() {
    return knexOrm(this.knex, this.who);
  }
}

async function knexOrm(knex, who) {
  await knex.schema.createTable('authors', (t) => {
    t.increments('id');
    t.string('name', 100).notNullable().unique();
  });
  await knex.schema.createTable('books', (t) => {
    t.increments('id');
    t.integer('author_id').unsigned().notNullable().references('authors.id').onDelete('CASCADE');
    t.string('title', 100);
    t.decimal('price', 10, 2).defaultTo(1);
  });
  const seen = [await knex.schema.hasTable('books'), await knex.schema.hasColumn('books', 'none')];
  await knex.transaction(async (trx) => {
    for (let n = 0; n < 3; n += 1) {
      await trx('authors').insert({ name: `${who.application} ${n}` });
      const author = await trx('authors').where({ name: `${who.application} ${n}` }).first();
      await trx('books').insert([0, 1, 2].map((k) => ({ author_id: author.id, title: `${n}.${k}`, price: k })));
    }
  });
  await knex('authors').insert({ name: 'inner' });
  seen.push(await knex('authors').insert({ name: 'inner' }).then(() => 'no error', (e) => e.code));
  seen.push(await knex('authors').leftJoin('books', 'authors.id', 'books.author_id').groupBy('authors.name').orderBy('authors.name')
    .select('authors.name').count('books.id as n'));
  seen.push(await knex('books').where('price', '>=', 1).update({ price: knex.raw('price * 2') }));
  seen.push(await knex('books').sum('price as all'));
  seen.push(await knex('books').whereIn('title', ['1.1', '2.2']).forUpdate().select('title', 'price').orderBy('title'));
  seen.push(await knex('authors').where({ name: 'inner' }).del());
  await knex.schema.dropTable('books');
  await knex.schema.dropTable('authors');
  return seen;
}

// Drizzle over a pool of node-postgres.
class Drizzle {
  constructor(who) {
    this.who = who;
  }

  async open() {
    const { Pool } = require('pg');
    this.pool = new Pool({ ...server, max: 1, options: options(this.who), application_name: this.who.application });
    this.pool.on('error', () => {});
    this.levels = [require('drizzle-orm/node-postgres').drizzle(this.pool)];
    await this.query('SELECT 1', []);
  }

  get db() {
    return this.levels.at(-1);
  }

  async close() {
    await this.pool.end();
  }

  describe(error) {
    return describe(error);
  }

  // A text with parameters in it, as Drizzle's sql`...` makes them.
  build(text, params) {
    const { sql } = require('drizzle-orm');
    return sql.join(text.split(/\$\d/).flatMap((part, n) => (n ? [sql`${params[n - 1]}`, sql.raw(part)] : [sql.raw(part)])));
  }

  async execute(sql, params) {
    return (await this.db.execute(this.build(sql, params))).rowCount;
  }

  async query(sql, params) {
    return (await this.db.execute(this.build(sql, params))).rows.map((row) => Object.values(row));
  }

  prepared(sql, params) {
    return this.query(sql, params);
  }

  async transaction(body, commit) {
    try {
      await this.db.transaction(async (inner) => {
        this.levels.push(inner);
        try {
          await body();
          if (!commit) throw new Rollback();
        } finally {
          this.levels.pop();
        }
      });
    } catch (e) {
      if (!(e instanceof Rollback)) throw e;
    }
  }

  savepoint(body, release) {
    return this.transaction(body, release);
  }

  async *stream(sql) {
    yield* (await this.db.execute(this.build(sql, []))).rows;
  }

  async orm() {
    const d = require('drizzle-orm');
    const p = require('drizzle-orm/pg-core');
    const authors = p.pgTable('authors', { id: p.serial('id').primaryKey(), name: p.text('name').notNull().unique() });
    const books = p.pgTable('books', { id: p.serial('id').primaryKey(), authorId: p.integer('author_id').notNull(), price: p.numeric('price').default('1') });
    await this.execute('CREATE TABLE authors (id serial PRIMARY KEY, name text NOT NULL UNIQUE)', []);
    await this.execute('CREATE TABLE books (id serial PRIMARY KEY, author_id int NOT NULL, price numeric(10, 2) DEFAULT 1)', []);
    const made = await this.db.insert(authors).values([0, 1, 2].map((n) => ({ name: `${this.who.application} ${n}` }))).returning();
    const seen = [made];
    await this.db.transaction(async (tx) => {
      for (const author of made) await tx.insert(books).values([{ authorId: author.id }, { authorId: author.id, price: '2.5' }]);
    });
    seen.push(await this.db.insert(authors).values({ name: made[0].name }).onConflictDoNothing().returning());
    seen.push(await this.db.select({ name: authors.name, n: d.count(books.id) }).from(authors).leftJoin(books, d.eq(books.authorId, authors.id))
      .groupBy(authors.name).orderBy(authors.name));
    const byName = this.db.select().from(authors).where(d.eq(authors.name, d.sql.placeholder('name'))).prepare('by_name');
    for (const { name } of made) seen.push(await byName.execute({ name }));
    seen.push((await this.db.update(books).set({ price: d.sql`${books.price} * 2` }).where(d.gte(books.price, '2'))).rowCount);
    seen.push(await this.db.delete(authors).where(d.eq(authors.name, made[2].name)).returning());
    await this.execute('DROP TABLE books', []);
    await this.execute('DROP TABLE authors', []);
    return seen;
  }
}

module.exports = { Pg, Knex, Drizzle, knexOrm };
