import { refuse } from '../../../shared/domain/errors/errors.ts';
import { pageOf } from '../../replies/common.ts';
import { scannedObject } from '../../replies/objects.ts';
import { ofQuery } from '../../replies/refusals.ts';
import { scanQuery } from '../../requests/queries.ts';
import { json, noBody, route } from '../../route.ts';

const paths = ['/1.1/classes/:className', '/1.1/classes/:className/:objectId'];

/** Users and installations have routes of their own; there are no other classes (protocol/objects.md#create-and-update). */
const unknownClass = (method: 'GET' | 'POST' | 'PUT' | 'DELETE') =>
  route({
    method,
    path: paths,
    operation: `${method.toLowerCase()}UnknownClass`,
    summary: 'Refused with 101: there are no classes besides `_User`, `_Installation` and `_Role`.',
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
    method: 'GET',
    path: '/1.1/scan/classes/:className',
    operation: 'scanClass',
    summary: 'Reads all users, installations or roles of an app page by page with a `cursor`.',
    auth: 'scan',
    limit: noBody,
    query: scanQuery,
    reply: pageOf(scannedObject),
    refusals: [...ofQuery],
    handle: async (call, { scans }) => json(await scans.scan(call, call.params.className ?? '', call.query)),
  }),
  unknownClass('GET'),
  unknownClass('POST'),
  unknownClass('PUT'),
  unknownClass('DELETE'),
];
