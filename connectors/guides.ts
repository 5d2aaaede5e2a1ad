/**
 * Help on the credentials of each gateway. The console imports this file too, so it imports no
 * connector and no module of Node.js.
 */
import { isJsonObject, type JsonObject } from '../shared/domain/json.ts';
import type { ConnectorId } from '../shared/domain/labels.ts';
import type { Language } from '../shared/domain/texts/catalogue.ts';
import {
  type CredentialGuide,
  foreignFile,
  type GuideFacts,
  guideIn,
  type VendorFile,
} from './contract/guide.ts';

/** Apple's credentials (protocol/apns.md#hosts). */
const apnsGuide: GuideFacts = {
  name: 'apns',
  example: {
    auth: 'token',
    teamId: 'ABCDE12345',
    keyId: 'KEY1234567',
    privateKey: '-----BEGIN PRIVATE KEY-----\n…\n-----END PRIVATE KEY-----\n',
    topics: ['com.example.app'],
  },
  takesKeyFiles: true,
};

const needed = ['project_id', 'client_email', 'private_key', 'private_key_id', 'token_uri'];

/** Google's credentials (protocol/fcm.md#access-token). */
const fcmGuide: GuideFacts = {
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
  return other === undefined
    ? undefined
    : { error: `this is ${other}; the service account file is needed` };
}

/** Honor's credentials (protocol/honor.md#access-token). */
const honorGuide: GuideFacts = {
  name: 'honor',
  example: {
    appId: '104000000',
    clientId: '0123456789abcdef0123456789abcdef',
    clientSecret: '0123456789abcdef0123456789abcdef',
  },
  numericId: 'appId',
};

/** Huawei's credentials (protocol/huawei.md#access-tokens). */
const huaweiGuide: GuideFacts = {
  name: 'huawei',
  example: { appId: '101234567', appSecret: '0123456789abcdef0123456789abcdef' },
  promptedSecret: 'appSecret',
  fromFile: readHuaweiFile,
  fileMembers: ['serviceAccount'],
  numericId: 'appId',
};

function readHuaweiFile(document: JsonObject): VendorFile | undefined {
  if (typeof document.sub_account === 'string')
    return { members: { serviceAccount: document }, file: 'the service account file' };
  const appId = [document.client, document.app_info]
    .filter(isJsonObject)
    .map((part) => part.app_id)
    .find((id) => typeof id === 'string');
  if (appId === undefined) {
    const other = foreignFile(document);
    return other === undefined
      ? undefined
      : { error: `this is ${other}; a file of AppGallery Connect is needed` };
  }
  return {
    members: { appId },
    file: 'agconnect-services.json',
    lacks:
      'agconnect-services.json does not hold the App secret (its client_secret is another one, and encrypted): take appSecret from AppGallery Connect',
  };
}

/** Meizu's credentials (protocol/meizu.md#hosts). */
const meizuGuide: GuideFacts = {
  name: 'meizu',
  example: { appId: '100999', appSecret: '0123456789abcdef0123456789abcdef' },
  numericId: 'appId',
};

/** OPPO's credentials (protocol/oppo.md#hosts). */
const oppoGuide: GuideFacts = {
  name: 'oppo',
  example: {
    appKey: '0123456789abcdef0123456789abcdef',
    masterSecret: '0123456789abcdef0123456789abcdef',
  },
};

/** vivo's credentials (protocol/vivo.md#host). */
const vivoGuide: GuideFacts = {
  name: 'vivo',
  example: {
    appId: '10004',
    appKey: '25509283-0000-4b9e-83fe-b6e55ac6243e',
    appSecret: '01234567-89ab-4cde-8f01-23456789abcd',
  },
  numericId: 'appId',
};

/** Xiaomi's credentials (protocol/xiaomi.md#hosts). */
const xiaomiGuide: GuideFacts = {
  name: 'xiaomi',
  example: {
    appId: '2882303761517000000',
    appSecret: 'QmFzZTY0TG9va2luZw==',
    packageName: 'com.example.app',
  },
  numericId: 'appId',
};

/** Web Push's credentials (protocol/webpush.md#vapid). */
const webPushGuide: GuideFacts = {
  name: 'webpush',
  example: { subject: 'mailto:push@example.com' },
};

const guides: Partial<Record<ConnectorId, GuideFacts>> = {
  apns: apnsGuide,
  fcm: fcmGuide,
  vendor_a: huaweiGuide,
  vendor_b: xiaomiGuide,
  vendor_c: meizuGuide,
  vendor_d: oppoGuide,
  vendor_e: vivoGuide,
  vendor_f: honorGuide,
  vendor_g: fcmGuide,
  webpush: webPushGuide,
};

/** Returns the help on the credentials of a connector; undefined if the connector needs none. */
export function guideOf(
  connectorId: ConnectorId,
  language: Language = 'en',
): CredentialGuide | undefined {
  const facts = guides[connectorId];
  return facts && guideIn(facts, language);
}
