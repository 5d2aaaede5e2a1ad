/**
 * Sends with Parse Server and its push adapter, on a separate database in the same PostgreSQL. The
 * duration of a push is the time from the reply until its status is final, as with a push of this
 * service.
 */
import { once } from 'node:events';
import type { Server } from 'node:http';
import { createRequire } from 'node:module';
import { join } from 'node:path';
import { setTimeout as sleep } from 'node:timers/promises';
import { z } from 'zod';
import { Database } from '../../../../shared/db/pool.ts';
import { providerSettings } from './provider-settings.ts';
import { type RivalOrder, runRival, tokenOf } from './rival-process.ts';

const host = '127.0.0.1';
const appId = 'benchmark';
const masterKey = 'benchmark-master-key';
const pollMs = 20;

interface Running {
  /** Base URL of the API of Parse Server. */
  api: string;
  db: Database;
  http: Server;
}

let running: Running | undefined;
let seeded = 0;

const answerOf = z.looseObject({ status: z.string().optional(), numSent: z.number().optional() });

async function call(
  path: string,
  body?: object,
): Promise<{ answer: z.infer<typeof answerOf>; pushId: string }> {
  const reply = await fetch(`${running?.api}${path}`, {
    method: body === undefined ? 'GET' : 'POST',
    headers: {
      'X-Parse-Application-Id': appId,
      'X-Parse-Master-Key': masterKey,
      'Content-Type': 'application/json',
    },
    ...(body === undefined ? {} : { body: JSON.stringify(body) }),
  });
  if (!reply.ok) throw new Error(`${path} answers ${reply.status}`);
  return {
    answer: answerOf.parse(await reply.json()),
    pushId: reply.headers.get('x-parse-push-status-id') ?? '',
  };
}

/** Starts Parse Server, which creates its tables. */
async function start({ url, ca, topic, database, packages }: RivalOrder): Promise<Running> {
  const load = createRequire(join(packages, 'package.json'));
  const { ParseServer } = load('parse-server');
  const { hostname, port } = new URL(url);
  const http: Server = load('express')().listen(0, host);
  await once(http, 'listening');
  const address = http.address();
  const api = `http://${host}:${typeof address === 'object' ? address?.port : ''}/parse`;
  const ios = { ...providerSettings({ hostname, port, ca }), topic, production: false };
  const server = new ParseServer({
    // A URL of Parse Server cannot name a directory of sockets, but the options can. Parse Server
    // logs that it does not know these options.
    databaseURI: `postgres://localhost/${database.name}`,
    databaseOptions: { host: database.host, user: database.user },
    appId,
    masterKey,
    serverURL: api,
    push: { ios },
    silent: true,
    logsFolder: null,
  });
  await server.start();
  const app = load('express')();
  app.use('/parse', server.app);
  http.removeAllListeners('request').on('request', app);
  const databaseUrl = `postgresql://${database.user}@/${database.name}?host=${encodeURIComponent(database.host)}&port=5432`;
  const db = new Database({ url: databaseUrl, applicationName: 'bench', statementTimeoutMs: 0 });
  return { api, db, http };
}

/**
 * Replaces the installations by devices 1 to `devices`, with the tokens of rival-process.ts. The
 * first installation is created through the API, because Parse Server creates a table with the
 * first object.
 */
async function seed(db: Database, { devices, topic }: RivalOrder): Promise<void> {
  await call('/installations', {
    deviceType: 'ios',
    deviceToken: tokenOf(1),
    appIdentifier: topic,
  });
  await db.query('TRUNCATE "_Installation"');
  await db.query(
    `INSERT INTO "_Installation" ("objectId", "createdAt", "updatedAt", "deviceType", "deviceToken", "appIdentifier")
     SELECT lpad(to_hex(i), 10, '0'), now(), now(), 'ios',
            encode(substr(sha256(i::text::bytea), 1, 28) || int4send(i), 'hex'), $2
       FROM generate_series(1, $1::int) AS i`,
    [devices, topic],
  );
  await db.query('VACUUM ANALYZE "_Installation"');
}

async function push(order: RivalOrder): Promise<number> {
  running ??= await start(order);
  if (seeded !== order.devices) await seed(running.db, order);
  seeded = order.devices;
  const { pushId } = await call('/push', {
    where: { deviceType: 'ios' },
    data: { alert: 'Benchmark' },
  });
  const startedAtMs = performance.now();
  for (;;) {
    const { answer } = await call(`/classes/_PushStatus/${pushId}`);
    if (answer.status === 'failed') throw new Error('the push failed');
    if (answer.status === 'succeeded') return (performance.now() - startedAtMs) / 1000;
    await sleep(pollMs);
  }
}

runRival({
  name: 'Parse Server',
  push,
  close: async () => {
    running?.http.close();
    await running?.db.close();
  },
});
