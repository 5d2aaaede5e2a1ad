// Function host of existing apps: `leanengine` from the registry, in a separate process, because it keeps its app in
// globals. Reports its port over IPC, and the hooks that ran with their arguments.
const { createServer } = require('node:http');
const AV = require('leanengine');

const {
  APP_ID: appId,
  APP_KEY: appKey,
  MASTER_KEY: masterKey,
  HOOK_KEY: hookKey,
  API_URL: serverURL,
} = process.env;
AV.init({ appId, appKey, masterKey, hookKey, serverURL });

const { Cloud } = AV;
const tell = (hook, more) => process.send({ hook, ...more });
const told = (object) => ({ ...object.toJSON(), objectId: object.id });

Cloud.define('hello', ({ params }) => ({ hello: params.name ?? null }));
Cloud.define('fails', () => {
  throw new Cloud.Error('This function fails.', { code: 4711 });
});
Cloud.define('crashes', () => {
  throw new Error('broken');
});
Cloud.define('echo', (request) => request.params);
Cloud.define('whoami', (request) => ({
  user: request.currentUser?.id ?? null,
  address: request.meta.remoteAddress,
  isMaster: request.expressReq.AV.authMasterKey === true,
  stage: request.expressReq.AV.prod,
}));
Cloud.define('refuses', () => {
  throw new Cloud.Error('not today', { code: 4711, status: 422 });
});
Cloud.define('hangs', () => new Promise(() => undefined));
Cloud.define('hidden', { internal: true }, () => 'seen');
Cloud.define('describe', ({ params }) => ({
  isObject: params.thing instanceof AV.Object,
  className: params.thing?.className,
  id: params.thing?.id,
  colour: params.thing?.get?.('colour'),
  isDate: params.when instanceof Date,
}));
Cloud.define('things', ({ params }) => {
  const thing = AV.Object.createWithoutData('Thing', 'abc');
  thing._finishFetch(
    { colour: 'red', when: { __type: 'Date', iso: '2026-01-02T03:04:05.678Z' } },
    true,
  );
  return params.nested ? { inner: thing, n: 1 } : params.many ? [thing, thing] : thing;
});

if (process.env.WITH_HOOKS) require('./engine-hooks.cjs')({ AV, tell, told });

const engine = AV.express({ timeout: '3s', printFullStack: false });
const server = createServer((request, response) =>
  engine(request, response, () => response.writeHead(404).end()),
);
server.listen(0, '127.0.0.1', () => process.send({ port: server.address().port }));
process.on('disconnect', () => process.exit());
// Suppresses its output on refusals, which is for operators.
console.warn = () => undefined;
console.error = () => undefined;
