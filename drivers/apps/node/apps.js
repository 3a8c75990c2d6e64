// An application-shaped program in JavaScript: plays the steps that it is told in many clients at once. What apps.py does in Python;
// CommonJS, so that NODE_PATH is heeded. T_FRAMEWORK names the adapter: `pg.Pg` is the class Pg of pg.js.
'use strict';

const fs = require('node:fs');
const os = require('node:os');
const path = require('node:path');
const readline = require('node:readline');

const where = {
  host: process.env.T_HOST,
  port: Number(process.env.T_PORT),
  user: process.env.T_USER,
  password: process.env.T_PASSWORD,
  database: process.env.T_DB,
  kind: process.env.T_KIND,
};
const CANCEL_AGAIN_MS = 1000;

// Leaves a block whose framework rolls back what throws.
class Rollback extends Error {}

// As JSON has it, and the same each time.
function plain(value) {
  if (value === null || value === undefined) return null;
  if (typeof value === 'bigint') return `bigint ${value}`;
  if (Buffer.isBuffer(value)) return value.toString('hex');
  if (value instanceof Date) return `Date ${value.toISOString()}`;
  if (Array.isArray(value)) return value.map(plain);
  if (typeof value === 'object') return Object.fromEntries(Object.entries(value).map(([k, v]) => [k, plain(v)]));
  return value;
}

class Client {
  constructor(who, Adapter) {
    this.adapter = new Adapter(who);
  }

  async all(steps) {
    const seen = [];
    for (const [what, ...words] of steps) {
      try {
        seen.push(await this[what](...words));
      } catch (e) {
        if (e instanceof Rollback) throw e;
        seen.push({ error: this.error(e) });
      }
    }
    return seen;
  }

  error(e) {
    return this.adapter.describe(e);
  }

  async open() {
    await this.adapter.open();
    return null;
  }

  async close() {
    await this.adapter.close();
    return null;
  }

  async reconnect() {
    await this.adapter.close();
    await this.adapter.open();
    return null;
  }

  async execute(sql, params) {
    return plain(await this.adapter.execute(sql, params || []));
  }

  async query(sql, params) {
    return plain(await this.adapter.query(sql, params || []));
  }

  async prepared(sql, runs) {
    const seen = [];
    for (const params of runs) seen.push(plain(await this.adapter.prepared(sql, params)));
    return seen;
  }

  async fails(sql, params) {
    try {
      await this.adapter.query(sql, params || []);
    } catch (e) {
      return this.error(e);
    }
    return 'no error';
  }

  transaction(steps, commit) {
    return this.block((body) => this.adapter.transaction(body, commit), steps);
  }

  savepoint(steps, release) {
    return this.block((body) => this.adapter.savepoint(body, release), steps);
  }

  async block(how, steps) {
    let seen;
    await how(async () => {
      seen = await this.all(steps);
    });
    return seen;
  }

  async queue(take, done) {
    for (;;) {
      let found;
      await this.adapter.transaction(async () => {
        found = await this.adapter.query(take, []);
        for (const row of found) await this.adapter.execute(done, [row[0]]);
      }, true);
      if (!found.length) return null;
    }
  }

  async migrate(statements) {
    await this.adapter.transaction(async () => {
      for (const statement of statements) await this.adapter.execute(statement, []);
    }, true);
    return null;
  }

  async orm() {
    return this.adapter.orm ? plain(await this.adapter.orm()) : null;
  }

  async stream(sql) {
    let rows = 0;
    let total = 0;
    for await (const row of this.adapter.stream(sql)) {
      rows += 1;
      for (const c of Buffer.from(String(plain(Object.values(row).at(-1))))) total = (total * 31 + c) % 1000003;
    }
    return [rows, total];
  }

  copy_in(sql, text) {
    return this.adapter.copyIn(sql, text);
  }

  copy_out(sql) {
    return this.adapter.copyOut(sql);
  }

  listen(channel, payload) {
    return this.adapter.listen(channel, payload);
  }

  async load(sql, text) {
    const directory = fs.mkdtempSync(path.join(os.tmpdir(), 'weir-apps-'));
    const file = path.join(directory, 'rows');
    fs.writeFileSync(file, text);
    try {
      return plain(await this.adapter.load(sql.replace('{file}', file), file));
    } finally {
      fs.rmSync(directory, { recursive: true });
    }
  }

  // A cancel request that comes before the statement does is lost on any server, so it is said again.
  async cancel(sql) {
    let timer;
    const nag = async () => {
      await this.adapter.cancel();
      if (timer) timer = setTimeout(nag, CANCEL_AGAIN_MS);
    };
    timer = setTimeout(nag, 100);
    try {
      return await this.fails(sql, []);
    } finally {
      clearTimeout(timer);
      timer = null;
    }
  }
}

module.exports = { where, Rollback };

async function main() {
  const [file, name] = process.env.T_FRAMEWORK.split('.');
  const Adapter = require(`./${file}.js`)[name];
  const clients = new Map();
  for await (const line of readline.createInterface({ input: process.stdin })) {
    const told = JSON.parse(line);
    for (const [number, who] of Object.entries(told.clients || {})) clients.set(number, new Client(who, Adapter));
    for (const [number, steps] of Object.entries(told.steps || {})) {
      clients.get(number).all(steps).then((seen) => console.log(JSON.stringify({ client: number, seen })));
    }
  }
  process.exit(0);
}

main();
