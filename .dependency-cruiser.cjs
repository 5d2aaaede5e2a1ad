/**
 * Import rules (develop/architecture.md#imports): which folder may import which. The name of a rule is the message of a
 * failing check.
 */
const home = (library, places) => ({
  name: `${library} lives in ${places.join(' and ')} only`,
  severity: 'error',
  from: {
    path: '^(api|connectors|dispatcher|ops|shared)/',
    pathNot: [...places.map((p) => `^${p}`), '^ops/(?!sandbox)'],
  },
  to: { path: `^node_modules/${library}(/|$)` },
});

module.exports = {
  forbidden: [
    { name: 'no circles, types included', severity: 'error', from: {}, to: { circular: true } },
    {
      name: 'what is imported must exist and be installed',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      name: 'shared/domain imports itself, zod and the numbering plans of the world only',
      severity: 'error',
      from: { path: '^shared/domain/' },
      to: {
        pathNot: [
          '^shared/domain/',
          '^node_modules/zod/',
          '^node_modules/libphonenumber-js/',
          '^node:',
          '^crypto$',
        ],
        dependencyTypesNot: ['core'],
      },
    },
    {
      name: 'the base modules of shared import the domain and each other only',
      severity: 'error',
      from: { path: '^shared/(config/|process/|(metrics|clock|crypto)\\.ts$)' },
      to: {
        path: '^(api|connectors|dispatcher|ops|test)/|^shared/(db|queue|query|http|breaker|fairness|template)',
      },
    },
    {
      name: 'shared/db imports the domain and the base modules only',
      severity: 'error',
      from: { path: '^shared/db/' },
      to: { path: '^(api|connectors|dispatcher|ops|test)/|^shared/(queue|query)/' },
    },
    {
      name: 'shared/query imports the domain, the base modules and db only',
      severity: 'error',
      from: { path: '^shared/query/' },
      to: { path: '^(api|connectors|dispatcher|ops|test)/|^shared/queue/' },
    },
    {
      name: 'shared imports nothing above it',
      severity: 'error',
      from: { path: '^shared/' },
      to: { path: '^(api|connectors|dispatcher|ops|test)/' },
    },
    {
      name: 'a gateway imports the contract, http2, the kit and the base modules, never another gateway, db or queue',
      severity: 'error',
      from: { path: '^connectors/((?:vendors/)?[^/]+)/' },
      to: {
        path: '^(api|dispatcher|ops|test)/|^shared/(db|queue|query)/|^connectors/',
        pathNot: [
          '^connectors/$1/',
          '^connectors/contract/',
          '^connectors/provider\\.ts$',
          '^connectors/http2/',
          '^connectors/kit/',
        ],
      },
    },
    {
      name: 'connectors import no process and no database',
      severity: 'error',
      from: { path: '^connectors/' },
      to: { path: '^(api|dispatcher|ops|test)/|^shared/(db|queue|query)/' },
    },
    {
      name: 'the dispatcher imports shared and the connector registries, contracts and routing only',
      severity: 'error',
      from: { path: '^dispatcher/' },
      to: {
        path: '^(api|ops|test)/|^connectors/',
        pathNot: '^connectors/(contract/|(registry|routing|providers|provider)\\.ts$)',
      },
    },
    {
      name: 'the threads that send import no other room of the dispatcher',
      severity: 'error',
      from: { path: '^dispatcher/sending/' },
      to: { path: '^dispatcher/(?!sending/)' },
    },
    {
      name: 'delivery, recording and the breakers import neither planning, duties nor messages',
      severity: 'error',
      from: { path: '^dispatcher/(breakers|delivery|recording)/' },
      to: { path: '^dispatcher/(planning|duties|messages)/' },
    },
    {
      name: 'the api never imports the dispatcher, and of the connectors the registry, contract and routing only',
      severity: 'error',
      from: { path: '^api/' },
      to: {
        path: '^(dispatcher|ops|test)/|^connectors/',
        pathNot: '^connectors/(contract/|(registry|routing)\\.ts$)',
      },
    },
    {
      name: 'routes know no koa, db or queue: they call services',
      severity: 'error',
      from: { path: '^api/routes/' },
      to: {
        path: '^shared/(db|queue)/|^node_modules/(koa|@koa|pg|pg-boss)/|^connectors/|^api/(?!route\\.ts|route-loader\\.ts|object-call\\.ts|replies/|openapi/|services/|routes/)',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'the schemas of replies import the domain only, so that a console can import them',
      severity: 'error',
      from: { path: '^api/replies/' },
      to: { path: '^(api|connectors|dispatcher|ops|shared|test)/', pathNot: '^(api/replies|shared/domain)/' },
    },
    {
      name: 'services know no koa',
      severity: 'error',
      from: { path: '^api/services/' },
      to: { path: '^node_modules/(koa|@koa)/|^api/(middleware|routes|channel)/' },
    },
    {
      name: 'the device channel imports shared only',
      severity: 'error',
      from: { path: '^api/channel/' },
      to: { path: '^(connectors|dispatcher|ops|test)/|^api/', pathNot: '^api/channel/' },
    },
    {
      name: 'nobody imports ops or test',
      severity: 'error',
      from: { path: '^(api|connectors|dispatcher|shared)/' },
      to: { path: '^(ops|test)/' },
    },
    home('koa', ['api/(app\\.ts|middleware/)']),
    home('pg', ['shared/db/', 'ops/local/']),
    home('pg-boss', ['shared/queue/']),
    home('piscina', ['dispatcher/sending/pool.ts']),
    home('prom-client', ['shared/metrics.ts']),
    home('opossum', ['shared/breaker.ts']),
    home('libphonenumber-js', ['shared/domain/messages/phone.ts']),
    home('nodemailer', ['connectors/smtp/']),
    home('handlebars', ['shared/template.ts']),
    home('protobufjs', ['api/channel/protocols/']),
    home('undici', ['shared/http/']),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
