/**
 * Import rules (develop/architecture.md#imports): which folder may import which. The name of a rule is the message of a
 * failing check.
 */
const onlyIn = (library, places) => ({
  name: `only ${places.join(' and ')} may import ${library}`,
  severity: 'error',
  from: {
    path: '^(api|connectors|dispatcher|ops|shared)/',
    pathNot: [...places.map((p) => `^${p}`), '^ops/(?!sandbox)'],
  },
  to: { path: `^node_modules/${library}(/|$)` },
});

module.exports = {
  forbidden: [
    {
      name: 'no import cycles, including types',
      severity: 'error',
      from: {},
      to: { circular: true },
    },
    {
      name: 'every import must exist and be installed',
      severity: 'error',
      from: {},
      to: { couldNotResolve: true },
    },
    {
      // Loading them takes longer than most commands.
      name: 'commands may load connectors, credentials and checks only by import() when they run',
      severity: 'error',
      from: { path: '^ops/cli/(main|program|commands/)' },
      to: {
        path: '^(connectors|ops/cli/(credentials|doctor))/',
        dynamic: false,
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'shared/domain may import only itself, zod, libphonenumber-js and cron-parser',
      severity: 'error',
      from: { path: '^shared/domain/' },
      to: {
        pathNot: [
          '^shared/domain/',
          '^shared/clock\\.ts$',
          '^node_modules/zod/',
          '^node_modules/libphonenumber-js/',
          '^node_modules/cron-parser/',
          '^node:',
          '^crypto$',
        ],
        dependencyTypesNot: ['core'],
      },
    },
    {
      name: 'the base modules of shared may import only the domain and each other',
      severity: 'error',
      from: { path: '^shared/(config/|process/|(metrics|clock|crypto)\\.ts$)' },
      to: {
        path: '^(api|connectors|dispatcher|ops|test)/|^shared/(db|queue|query|http|breaker|batcher|semaphore|ttl-cache|event-loop|template)',
      },
    },
    {
      name: 'shared/db may import only the domain and the base modules',
      severity: 'error',
      from: { path: '^shared/db/' },
      to: { path: '^(api|connectors|dispatcher|ops|test)/|^shared/(queue|query)/' },
    },
    {
      name: 'shared/query may import only the domain, the base modules and db',
      severity: 'error',
      from: { path: '^shared/query/' },
      to: { path: '^(api|connectors|dispatcher|ops|test)/|^shared/queue/' },
    },
    {
      name: 'the rules of pushes may import only the domain, the base modules and db',
      severity: 'error',
      from: { path: '^shared/rules/' },
      to: { path: '^(api|connectors|dispatcher|ops|test)/|^shared/(queue|query|http)/' },
    },
    {
      name: 'shared must not import api, connectors, dispatcher and ops',
      severity: 'error',
      from: { path: '^shared/' },
      to: { path: '^(api|connectors|dispatcher|ops|test)/' },
    },
    {
      name: 'a connector may import the contract, http2, the kit and the base modules, not other connectors, db and queue',
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
      name: 'connectors must not import api, dispatcher, ops and the database',
      severity: 'error',
      from: { path: '^connectors/' },
      to: { path: '^(api|dispatcher|ops|test)/|^shared/(db|queue|query)/' },
    },
    {
      name: 'the dispatcher may import only shared and the connector registries, contracts, routing and trial gateway',
      severity: 'error',
      from: { path: '^dispatcher/' },
      to: {
        path: '^(api|ops|test)/|^connectors/',
        pathNot:
          '^connectors/(contract/|trial/gateway\\.ts$|(registry|routing|providers|provider)\\.ts$)',
      },
    },
    {
      name: 'dispatcher/sending must not import other folders of the dispatcher',
      severity: 'error',
      from: { path: '^dispatcher/sending/' },
      to: { path: '^dispatcher/(?!sending/)' },
    },
    {
      name: 'delivery, recording and breakers must not import planning, background and messages',
      severity: 'error',
      from: { path: '^dispatcher/(breakers|delivery|recording)/' },
      to: { path: '^dispatcher/(planning|background|messages)/' },
    },
    {
      name: 'the api must not import the dispatcher, and only registry, guides, contract and routing of the connectors',
      severity: 'error',
      from: { path: '^api/' },
      to: {
        path: '^(dispatcher|ops|test)/|^connectors/',
        pathNot: '^connectors/(contract/|(registry|guides|routing)\\.ts$)',
      },
    },
    {
      name: 'routes must not import koa, db and queue: they call services',
      severity: 'error',
      from: { path: '^api/routes/' },
      to: {
        path: '^shared/(db|queue)/|^node_modules/(koa|@koa|pg|pg-boss)/|^connectors/|^api/(?!route\\.ts|route-loader\\.ts|requests/|replies/|openapi/|services/|routes/)',
        dependencyTypesNot: ['type-only'],
      },
    },
    {
      name: 'reply schemas may import only the domain',
      severity: 'error',
      from: { path: '^api/replies/' },
      to: {
        path: '^(api|connectors|dispatcher|ops|shared|test)/',
        pathNot: '^(api/replies|shared/domain)/',
      },
    },
    {
      name: 'services must not import koa',
      severity: 'error',
      from: { path: '^api/services/' },
      to: { path: '^node_modules/(koa|@koa)/|^api/(middleware|routes|channel)/' },
    },
    {
      name: 'the device channel may import only shared',
      severity: 'error',
      from: { path: '^api/channel/' },
      to: { path: '^(connectors|dispatcher|ops|test)/|^api/', pathNot: '^api/channel/' },
    },
    {
      name: 'other folders must not import ops and test',
      severity: 'error',
      from: { path: '^(api|connectors|dispatcher|shared)/' },
      to: { path: '^(ops|test)/' },
    },
    {
      name: 'the client of the admin API may import only itself and the domain, so that a page can use it',
      severity: 'error',
      from: { path: '^ops/client/' },
      to: { pathNot: '^(ops/client|shared/domain)/' },
    },
    {
      name: 'what operators run must not import benchmarks, checks, generators and faults: the package leaves them out',
      severity: 'error',
      from: { path: '^ops/(cli|client|console|functions|import|local|move-in|package|sandbox)/' },
      to: { path: '^ops/(bench|check|deploy|docs|monitoring)/' },
    },
    {
      name: 'the console may import only itself, the client of the admin API, the domain, guides to credentials and its packages',
      severity: 'error',
      from: { path: '^ops/console/src/' },
      to: {
        path: '^(api|connectors|dispatcher|ops|shared|test)/',
        pathNot: [
          '^ops/console/src/',
          '^ops/client/',
          '^shared/domain/',
          '^connectors/guides\\.ts$',
        ],
      },
    },
    {
      name: 'only the console may import the packages of its page',
      severity: 'error',
      from: { path: '^(api|connectors|dispatcher|ops|shared|test)/', pathNot: '^ops/console/' },
      to: {
        path: '^node_modules/(react|react-dom|@base-ui|@tanstack|i18next|react-i18next|uplot|vite|marked)(/|$)',
      },
    },
    onlyIn('@opentelemetry', ['shared/process/tracing\\.ts']),
    onlyIn('koa', ['api/(app\\.ts|middleware/)']),
    onlyIn('koa-body', ['shared/http/body/']),
    onlyIn('pg', ['shared/db/', 'ops/local/']),
    onlyIn('pg-boss', ['shared/queue/']),
    onlyIn('piscina', ['dispatcher/sending/pool.ts']),
    onlyIn('prom-client', [
      'shared/metrics.ts',
      'shared/process/operation-metrics.ts',
      'shared/process/operation-metrics.ts',
    ]),
    onlyIn('opossum', ['shared/breaker.ts']),
    onlyIn('libphonenumber-js', ['shared/domain/messages/phone.ts']),
    onlyIn('cron-parser', ['shared/domain/pushes/recurrence.ts']),
    onlyIn('nodemailer', ['connectors/smtp/']),
    onlyIn('bson', ['ops/import/']),
    onlyIn('openid-client', ['api/services/operator/access/oidc-provider.ts']),
    onlyIn('handlebars', ['shared/template.ts']),
    onlyIn('protobufjs', ['api/channel/protocols/']),
    onlyIn('undici', ['shared/http/']),
  ],
  options: {
    doNotFollow: { path: 'node_modules' },
    // `site` contains scripts of a browser, whose imports are paths of the page's server.
    exclude: { path: '^ops/(console/dist|deploy/kubernetes|local/try/site)/' },
    tsPreCompilationDeps: true,
    tsConfig: { fileName: 'tsconfig.json' },
    enhancedResolveOptions: {
      exportsFields: ['exports'],
      conditionNames: ['import', 'require', 'node', 'default', 'types'],
    },
  },
};
