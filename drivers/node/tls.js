// Logins with TLS by pg and mysql2. The cases come from the environment: a name, a mode (disable, require, verify-ca,
// verify-full), and the CA that is trusted. What each sees is "clear" or "TLS", and an error is a refusal.
'use strict';

const fs = require('node:fs');
const { where, runAll } = require('./harness.js');

const login = { host: where.host, port: where.port, user: where.user, password: where.password, database: where.database };

async function postgres(mode, ca) {
  const { Client } = require('pg');
  const how = {
    disable: false,
    require: { rejectUnauthorized: false },
    'verify-ca': { ca, checkServerIdentity: () => undefined },
    'verify-full': { ca },
  }[mode];
  const client = new Client({ ...login, ssl: how });
  client.on('error', () => {});
  await client.connect();
  try {
    await client.query('select 1');
    return client.connection.stream.encrypted ? 'TLS' : 'clear';
  } finally {
    await client.end();
  }
}

async function mysql(mode, ca) {
  const driver = require('mysql2/promise');
  const how = {
    disable: undefined,
    require: { rejectUnauthorized: false },
    'verify-ca': { ca, verifyIdentity: false },
    'verify-full': { ca, verifyIdentity: true },
  }[mode];
  const conn = await driver.createConnection({ ...login, ssl: how });
  conn.on('error', () => {});
  try {
    const [rows] = await conn.query("show status like 'Ssl_version'");
    return rows[0].Value === '' ? 'clear' : 'TLS';
  } finally {
    await conn.end();
  }
}

const run = where.kind === 'postgres' ? postgres : mysql;
const tests = {};
for (const { name, mode, ca } of JSON.parse(process.env.T_TLS)) {
  tests[name] = () => run(mode, fs.readFileSync(ca));
}
runAll(tests);
