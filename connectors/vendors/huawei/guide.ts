import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import type { CredentialGuide, VendorFile } from '../../contract/guide.ts';

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
};

function readHuaweiFile(document: JsonObject): VendorFile | undefined {
  if (typeof document.sub_account === 'string') return { members: { serviceAccount: document } };
  const appId = [document.client, document.app_info]
    .filter(isJsonObject)
    .map((part) => part.app_id)
    .find((id) => typeof id === 'string');
  return appId === undefined ? undefined : { members: { appId } };
}
