// Runs tests and prints one JSON object a line (see tests/lib/weirtest/external.py). CommonJS, so that NODE_PATH is heeded.
'use strict';

const where = {
  host: process.env.T_HOST,
  port: Number(process.env.T_PORT),
  user: process.env.T_USER,
  password: process.env.T_PASSWORD,
  database: process.env.T_DB,
  kind: process.env.T_KIND,
};

const DEADLINE_MS = 60000; // bounds a test that hangs; no test is about time

async function runAll(tests) {
  for (const [name, test] of Object.entries(tests)) {
    const result = { name, ok: true };
    let timer;
    try {
      const hung = new Promise((_, no) => {
        timer = setTimeout(() => no(new Error(`no end after ${DEADLINE_MS} ms`)), DEADLINE_MS);
      });
      result.seen = await Promise.race([test(), hung]);
    } catch (e) {
      result.ok = false;
      result.error = (e && e.stack) || String(e);
    }
    clearTimeout(timer);
    console.log(JSON.stringify(result, (_k, v) => (typeof v === 'bigint' ? String(v) : v)));
  }
  process.exit(0);
}

function check(ok, text) {
  if (!ok) throw new Error(text);
}

// Runs what must fail and returns what `pick` takes from the error.
async function failing(promise, pick) {
  try {
    await promise;
  } catch (e) {
    return pick(e);
  }
  throw new Error('no error where one was due');
}

module.exports = { where, runAll, check, failing };
