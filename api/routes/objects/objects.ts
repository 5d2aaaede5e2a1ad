import { refuse } from '../../../shared/domain/errors/errors.ts';
import { pageOf } from '../../replies/common.ts';
import { batchReply, batchSaveReply, cqlResult, scannedObject } from '../../replies/objects.ts';
import { ofQuery, ofSave } from '../../replies/refusals.ts';
import { batchBody, batchSaveBody } from '../../requests/batches.ts';
import { cqlQuery, scanQuery } from '../../requests/queries.ts';
import { json, largestBody, noBody, route } from '../../route.ts';

/** Paths of classes other than users, installations and roles. */
const paths = ['/1.1/classes/:className', '/1.1/classes/:className/:objectId'];

/**
 * Declares a call that refuses other classes with 101. `_User`, `_Installation` and `_Role` have
 * their own routes (protocol/objects.md#create-and-update).
 */
const unknownClass = (method: 'GET' | 'POST' | 'PUT' | 'DELETE') =>
  route({
    method,
    path: paths,
    operation: `${method.toLowerCase()}UnknownClass`,
    summary: 'Refused with 101: the only classes are `_User`, `_Installation` and `_Role`.',
    auth: 'app',
    limit: noBody,
    reply: {},
    refusals: ['objectNotFound'],
    handle: () => {
      throw refuse('objectNotFound', "Class or object doesn't exists.");
    },
  });

export default [
  route({
    method: 'POST',
    path: '/1.1/batch',
    operation: 'runBatch',
    summary:
      'Runs up to 1,000 calls (`requests`: a list of `method`, `path`, `body`) and returns ' +
      'the list of their replies.',
    auth: 'app',
    limit: largestBody,
    isBatch: true,
    body: batchBody,
    reply: batchReply,
    refusals: ['tooLarge'],
    handle: async (call, { batches }) => ({ body: await batches.run(call) }),
  }),
  route({
    method: 'POST',
    path: '/1.1/batch/save',
    operation: 'saveBatch',
    summary:
      'Saves objects that depend on each other: `requests` as of `/1.1/batch`, and objects ' +
      'inside them that are saved first.',
    auth: 'app',
    limit: largestBody,
    isBatch: true,
    body: batchSaveBody,
    reply: batchSaveReply,
    refusals: ofSave,
    handle: async (call, { batches }) => ({ body: await batches.save(call) }),
  }),
  // Runs `select` statements over users, installations and roles (protocol/queries.md#cql).
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
  route({
    method: 'GET',
    path: '/1.1/scan/classes/:className',
    operation: 'scanClass',
    summary: 'Reads all users, installations or roles of an app page by page with a `cursor`.',
    auth: 'scan',
    limit: noBody,
    query: scanQuery,
    reply: pageOf(scannedObject),
    refusals: [...ofQuery],
    handle: async (call, { scans }) =>
      json(await scans.scan(call, call.params.className ?? '', call.query)),
  }),
  unknownClass('GET'),
  unknownClass('POST'),
  unknownClass('PUT'),
  unknownClass('DELETE'),
];
