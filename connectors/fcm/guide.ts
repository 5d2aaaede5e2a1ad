import type { JsonObject } from '../../shared/domain/json.ts';
import { foreignFile, type GuideFacts, type VendorFile } from '../contract/guide.ts';

const needed = ['project_id', 'client_email', 'private_key', 'private_key_id', 'token_uri'];

/** Google's credentials (protocol/fcm.md#access-token). */
export const fcmGuide: GuideFacts = {
  name: 'fcm',
  example: {
    serviceAccount: {
      project_id: 'example-app',
      client_email: 'firebase-adminsdk@example-app.iam.gserviceaccount.com',
      private_key: '-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n',
      private_key_id: '0123456789abcdef',
      token_uri: 'https://oauth2.googleapis.com/token',
    },
  },
  fromFile: readServiceAccount,
  fileMembers: ['serviceAccount'],
};

function readServiceAccount(document: JsonObject): VendorFile | undefined {
  const isAccount =
    document.type === 'service_account' ||
    (document.type === undefined && needed.every((name) => typeof document[name] === 'string'));
  if (isAccount) return { members: { serviceAccount: document }, file: 'the service account file' };
  const other = foreignFile(document);
  return other === undefined ? undefined : { error: `this is ${other}; the service account file is needed` };
}
