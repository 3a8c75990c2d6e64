// mysql2: query (text) and execute (binary), prepared statements, multi statements, LOCAL INFILE by stream.
'use strict';

const mysql = require('mysql2/promise');
const { Readable } = require('node:stream');
const { where, runAll, check, failing } = require('./harness.js');

const options = (more = {}) => ({
  host: where.host,
  port: where.port,
  user: where.user,
  password: where.password,
  database: where.database,
  ...more,
});
const state = (e) => [e.errno, e.sqlState, e.sqlMessage];

async function withConnection(run, more) {
  const conn = await mysql.createConnection(options(more));
  conn.on('error', () => {});
  try {
    return await run(conn);
  } finally {
    await conn.end();
  }
}

const tests = {
  login: () =>
    withConnection(async (c) => {
      const [rows] = await c.query('select database() as d, @@character_set_client as c, @@collation_connection as o');
      return rows;
    }),

  charsets: async () => {
    const seen = [];
    for (const charset of ['utf8mb4', 'LATIN1_SWEDISH_CI', 'UTF8_GENERAL_CI']) {
      seen.push(
        await withConnection(
          async (c) => (await c.query("select 'äß' as t, length('äß') as n, @@character_set_results as r"))[0],
          { charset },
        ),
      );
    }
    return seen;
  },

  wrong_password: () => failing(withConnection(async () => {}, { password: 'wrong' }), (e) => e.errno),
  no_such_database: () => failing(withConnection(async () => {}, { database: 'no_such_db' }), (e) => e.errno > 0),

  text_and_binary: () =>
    withConnection(async (c) => {
      const seen = [];
      await c.query('drop table if exists node_types');
      await c.query(
        'create table node_types (id int primary key auto_increment, s varchar(100), b varbinary(100), f double, d decimal(20,5), at datetime(3), j json)',
      );
      const values = ["ü'\"\\", Buffer.from([0, 255]), 1.25, '123.45', '2024-02-29 23:59:59.123', '{"a": [1]}'];
      for (const run of ['query', 'execute']) {
        const [done] = await c[run]('insert into node_types (s, b, f, d, at, j) values (?, ?, ?, ?, ?, ?)', values);
        seen.push([done.insertId, done.affectedRows, done.warningStatus]);
        const [rows, fields] = await c[run]('select id, s, hex(b) as b, f, d, cast(at as char) as at, j from node_types where id > ?', [0]);
        seen.push(rows, fields.map((f) => [f.name, f.columnType]));
      }
      const [done] = await c.execute('update node_types set f = f + 1 where f > ?', [0]);
      seen.push([done.affectedRows, done.changedRows, done.info]);
      await c.query('drop table node_types');
      return seen;
    }),

  prepared: () =>
    withConnection(async (c) => {
      const statement = await c.prepare('select ? + ? as n, repeat(?, 2) as t');
      const seen = [];
      for (let i = 0; i < 5; i++) seen.push((await statement.execute([i, 1, `t${i}`]))[0]);
      await statement.close();
      seen.push(await failing(c.prepare('select from'), state));
      for (let i = 0; i < 40; i++) seen.push((await c.execute(`select ? as v${i % 10}`, [i]))[0]);
      c.unprepare('select ? as v1');
      seen.push((await c.execute('select ? as v1', ['again']))[0]);
      return seen;
    }, { maxPreparedStatements: 6 }),

  multi_statements: async () => {
    const seen = await withConnection(
      async (c) => {
        const [rows] = await c.query("select 1 as a; select 'b' as b; do 0; set @x = 5; select @x as x");
        const partly = await failing(c.query('select 1; select * from no_such_table; select 2'), state);
        return [rows.map((r) => (Array.isArray(r) ? r : 'ok')), partly, (await c.query('select 1 as still'))[0]];
      },
      { multipleStatements: true },
    );
    seen.push(await withConnection((c) => failing(c.query('select 1; select 2'), (e) => e.errno)));
    return seen;
  },

  procedures: () =>
    withConnection(async (c) => {
      await c.query('drop procedure if exists node_proc');
      await c.query("create procedure node_proc(in n int) begin select n as first; select n + 1 as second; end");
      const seen = [];
      for (const run of ['query', 'execute']) {
        const [results] = await c[run]('call node_proc(?)', [7]);
        seen.push(results.map((r) => (Array.isArray(r) ? r : [r.affectedRows])));
      }
      await c.query('drop procedure node_proc');
      return seen;
    }),

  transactions: () =>
    withConnection(async (c) => {
      await c.query('drop table if exists node_tx');
      await c.query('create table node_tx (id int primary key)');
      await c.beginTransaction();
      await c.execute('insert into node_tx values (?)', [1]);
      await c.rollback();
      await c.beginTransaction();
      await c.execute('insert into node_tx values (?)', [2]);
      const duplicate = await failing(c.execute('insert into node_tx values (?)', [2]), state);
      await c.execute('insert into node_tx values (?)', [3]);
      await c.commit();
      const [rows] = await c.query('select * from node_tx order by id');
      await c.query('drop table node_tx');
      return [rows, duplicate];
    }),

  errors: () =>
    withConnection(async (c) => {
      const seen = [];
      for (const text of ['select * from no_such_table', 'selec 1', 'select no_such_function(1)']) {
        seen.push(await failing(c.query(text), state), await failing(c.execute(text), state));
        await c.ping();
      }
      return seen;
    }),

  local_infile: async () => {
    return withConnection(async (c) => {
      await c.query('drop table if exists node_infile');
      await c.query('create table node_infile (id int, v text)');
      const lines = Array.from({ length: 5000 }, (_, i) => Buffer.from(`${i}\t${'v'.repeat(i % 60)}\n`));
      const [done] = await c.query({
        sql: "load data local infile 'rows' into table node_infile",
        infileStreamFactory: () => Readable.from(lines),
      });
      const [rows] = await c.query('select count(*) as n, sum(length(v)) as bytes from node_infile');
      await c.query('drop table node_infile');
      return [done.affectedRows, done.info, rows];
    });
  },

  change_user: () =>
    withConnection(async (c) => {
      await c.query('set @mine = 1');
      await c.changeUser({ user: 'app_other', password: where.password, database: 'app2' });
      const [rows] = await c.query('select database() as d, @mine as m, substring_index(current_user(), "@", 1) as u');
      await c.reset?.();
      return rows;
    }),

  large: () =>
    withConnection(async (c) => {
      const seen = [];
      for (const size of [65536, 16777215 - 40, 16777216, 18000000]) {
        const text = 'n'.repeat(size);
        const [rows] = await c.query('select length(?) as n, ? as t', [text, text]);
        check(rows[0].n === size && rows[0].t === text, `${size} bytes did not come back as sent`);
        const [again] = await c.execute('select length(?) as n', [text]);
        seen.push(rows[0].n, again[0].n);
      }
      return seen;
    }),

  stream: () =>
    withConnection(async (c) => {
      let total = 0;
      const query = c.connection.query('select a.n * 10 + b.n as n from (select 1 n union select 2 union select 3) a, (select 1 n union select 2 union select 3) b');
      for await (const row of query.stream()) total += Number(row.n);
      return total;
    }),

  pool_of_many: async () => {
    const pool = mysql.createPool(options({ connectionLimit: 30 }));
    const got = await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        const [rows] = await pool.execute(`select concat(?, '-${i % 5}') as t`, [`v${i}`]);
        return rows[0].t === `v${i}-${i % 5}`;
      }),
    );
    await pool.end();
    check(got.every(Boolean), 'an answer went to another query');
    return got.length;
  },
};

runAll(tests);
