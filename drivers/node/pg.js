// node-postgres: simple and extended queries, named statements, cursors, COPY streams, LISTEN.
'use strict';

const { Client, Pool } = require('pg');
const Cursor = require('pg-cursor');
const { from: copyFrom, to: copyTo } = require('pg-copy-streams');
const { pipeline } = require('node:stream/promises');
const { Readable, Writable } = require('node:stream');
const { where, runAll, check, failing } = require('./harness.js');

const options = (more = {}) => ({
  host: where.host,
  port: where.port,
  user: where.user,
  password: where.password,
  database: where.database,
  ...more,
});
const state = (e) => [e.code, e.message];

async function withClient(run, more) {
  const client = new Client(options(more));
  // An error of the connection itself reaches the promise in flight; without a listener it would end the process.
  client.on('error', () => {});
  await client.connect();
  try {
    return await run(client);
  } finally {
    await client.end();
  }
}

const tests = {
  login: () =>
    withClient(
      async (c) => [
        (await c.query('show application_name')).rows,
        (await c.query('show search_path')).rows,
        (await c.query('show statement_timeout')).rows,
        (await c.query('show idle_in_transaction_session_timeout')).rows,
      ],
      {
        application_name: 'node app',
        statement_timeout: 12345,
        idle_in_transaction_session_timeout: 23456,
        options: '-c search_path=pg_catalog',
      },
    ),

  wrong_password: async () =>
    failing(withClient(async () => {}, { password: 'wrong' }), (e) => e.code),

  types: () =>
    withClient(async (c) => {
      const seen = [];
      for (let i = 0; i < 3; i++) {
        const r = await c.query(
          'select $1::int4 a, $2::int8 b, $3::float8 c, $4::text d, $5::bytea e, $6::jsonb f, $7::int4[] g, $8::text h',
          [i, '1099511627776', 1.5, 'ü\'"\\', Buffer.from([0, 255]), { k: [1] }, [1, 2], null],
        );
        seen.push(r.rows, r.fields.map((f) => [f.name, f.dataTypeID]), r.command, r.rowCount);
      }
      return seen;
    }),

  simple_multi: () =>
    withClient(async (c) => {
      const r = await c.query("select 1 as a; select 'two' as b, 3 as c; create temp table node_multi (i int); insert into node_multi values (1)");
      return r.map((x) => [x.command, x.rowCount, x.rows]);
    }),

  named_statements: () =>
    withClient(async (c) => {
      const seen = [];
      for (let i = 0; i < 10; i++) {
        const r = await c.query({ name: `plus${i % 3}`, text: `select $1::int + ${i % 3} as n`, values: [i] });
        seen.push(r.rows[0].n);
      }
      seen.push(await failing(c.query({ name: 'bad', text: 'select nothing from nowhere' }), state));
      seen.push((await c.query({ name: 'plus0', text: 'select $1::int + 0 as n', values: [5] })).rows[0].n);
      return seen;
    }),

  same_name_other_text: async () => {
    // Two clients use one name for different texts.
    return withClient((a) =>
      withClient(async (b) => {
        const seen = [];
        for (let i = 0; i < 5; i++) {
          seen.push((await a.query({ name: 'q', text: 'select 1 as n' })).rows[0].n);
          seen.push((await b.query({ name: 'q', text: 'select $1::text as n', values: ['two'] })).rows[0].n);
        }
        return seen;
      }),
    );
  },

  queued_queries: () =>
    withClient(async (c) => {
      const all = Array.from({ length: 100 }, (_, i) => c.query('select $1::int as n', [i]));
      const rows = (await Promise.all(all)).map((r) => r.rows[0].n);
      rows.forEach((n, i) => check(n === i, `answer ${i} was ${n}`));
      const mixed = await Promise.allSettled([c.query('select 1'), c.query('select 1/0'), c.query('select $1::int', [3])]);
      return [rows.length, mixed.map((m) => m.status)];
    }),

  cursor: () =>
    withClient(async (c) => {
      const cursor = c.query(new Cursor('select i from generate_series(1, $1::int) i', [250]));
      let total = 0;
      const sizes = [];
      for (;;) {
        const rows = await cursor.read(40);
        sizes.push(rows.length);
        if (rows.length === 0) break;
        total += rows.reduce((a, r) => a + r.i, 0);
      }
      await cursor.close();
      const early = c.query(new Cursor('select i from generate_series(1, 1000) i'));
      sizes.push((await early.read(3)).length);
      await early.close();
      return [total, sizes, (await c.query('select 1 as one')).rows];
    }),

  copy_in_and_out: () =>
    withClient(async (c) => {
      await c.query('drop table if exists node_copy');
      await c.query('create table node_copy (id int primary key, v text)');
      const lines = Array.from({ length: 5000 }, (_, i) => `${i}\t${'v'.repeat(i % 60)}\n`);
      await pipeline(Readable.from(lines), c.query(copyFrom('copy node_copy from stdin')));
      const error = await failing(
        pipeline(Readable.from(lines), c.query(copyFrom('copy node_copy from stdin'))),
        state,
      );
      let bytes = 0;
      const sink = new Writable({
        write(chunk, _e, done) {
          bytes += chunk.length;
          done();
        },
      });
      await pipeline(c.query(copyTo('copy node_copy to stdout')), sink);
      const { rows } = await c.query('select count(*)::int as n from node_copy');
      await c.query('drop table node_copy');
      return [bytes, rows, error];
    }),

  transaction: () =>
    withClient(async (c) => {
      await c.query('drop table if exists node_tx');
      await c.query('create table node_tx (id int primary key)');
      await c.query('begin');
      await c.query('insert into node_tx values ($1)', [1]);
      await c.query('rollback');
      await c.query('begin');
      await c.query('insert into node_tx values ($1)', [2]);
      const duplicate = await failing(c.query('insert into node_tx values ($1)', [2]), state);
      const after = await failing(c.query('select 1'), state);
      await c.query('rollback');
      const { rows } = await c.query('select count(*)::int as n from node_tx');
      await c.query('drop table node_tx');
      return [duplicate, after, rows];
    }),

  errors: () =>
    withClient(async (c) => {
      const seen = [];
      for (const text of ['select * from no_such_table', 'selec', 'select 1/0']) {
        seen.push(await failing(c.query(text), (e) => [e.code, e.message, e.severity, e.position, e.routine]));
        seen.push((await c.query('select 1 as one')).rows);
      }
      seen.push(await failing(c.query('select $1::int', ['x']), state));
      return seen;
    }),

  notices_and_notifications: () =>
    withClient((a) =>
      withClient(async (b) => {
        const seen = [];
        a.on('notice', (n) => seen.push(['notice', n.message]));
        await a.query("do $$ begin raise notice 'hello'; end $$");
        const heard = new Promise((yes) => {
          const got = [];
          a.on('notification', (n) => {
            got.push([n.channel, n.payload]);
            if (got.length === 3) yes(got);
          });
        });
        await a.query('listen node_channel');
        for (let i = 0; i < 3; i++) await b.query('select pg_notify($1, $2)', ['node_channel', `m${i}`]);
        return [seen, await heard];
      }),
    ),

  large: () =>
    withClient(async (c) => {
      const seen = [];
      for (const size of [65536, 1 << 20, 9000000]) {
        const text = 'n'.repeat(size);
        const { rows } = await c.query('select $1::text as t', [text]);
        check(rows[0].t === text, `${size} bytes did not come back as sent`);
        seen.push(rows[0].t.length);
      }
      return seen;
    }),

  pool_of_many: async () => {
    const pool = new Pool(options({ max: 30 }));
    pool.on('error', () => {});
    const got = await Promise.all(
      Array.from({ length: 300 }, async (_, i) => {
        const { rows } = await pool.query({ name: `many${i % 5}`, text: `select $1::text || '-${i % 5}' as t`, values: [`v${i}`] });
        return rows[0].t === `v${i}-${i % 5}`;
      }),
    );
    await pool.end();
    check(got.every(Boolean), 'an answer went to another query');
    return got.length;
  },
};

runAll(tests);
