import { cqlResult } from '../../replies/objects.ts';
import { ofQuery } from '../../replies/refusals.ts';
import { cqlQuery } from '../../requests/queries.ts';
import { json, noBody, route } from '../../route.ts';

export default [
  // `select` statements over users and installations (protocol/queries.md#cql).
  route({
    method: 'GET',
    path: '/1.1/cloudQuery',
    operation: 'runCql',
    summary: 'Runs a CQL `select` statement (`cql`, `pvalues`) over users, installations or roles.',
    auth: 'app',
    limit: noBody,
    session: 'optional',
    query: cqlQuery,
    reply: cqlResult,
    refusals: ['cqlSyntax', ...ofQuery],
    handle: async (call, { cloudQuery }) => json(await cloudQuery.run(call, call.query)),
  }),
];
