import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { type CredentialGuide, foreignFile, type VendorFile } from '../../contract/guide.ts';

/** Huawei's credentials (protocol/huawei.md#access-tokens). */
export const huaweiGuide: CredentialGuide = {
  source:
    'AppGallery Connect, "Project settings", "General information": App ID and App secret (OAuth 2.0 client). A service account is made in the API Console under "Credentials"; only HarmonyOS 5 and newer needs it.',
  members: {
    appId: 'the App ID, digits',
    appSecret:
      'the App secret; the client secret inside agconnect-services.json is another one and encrypted',
    intentHost: 'host of the intent that a tap opens, where the app does not use the one of the SDK',
    serviceAccount: 'content of the service account file, for devices of HarmonyOS 5 and newer',
    callbackKey: 'key of the signed delivery receipts, where they are signed',
    callbackUser: 'user of the signed delivery receipts, where they are signed',
  },
  example: { appId: '101234567', appSecret: '0123456789abcdef0123456789abcdef' },
  files: [
    'agconnect-services.json with the app secret: it is asked for, or read from --secret-file',
    'the service account file, beside it',
  ],
  askedSecret: { member: 'appSecret', question: 'App secret of AppGallery Connect' },
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
