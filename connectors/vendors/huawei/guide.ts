import { isJsonObject, type JsonObject } from '../../../shared/domain/json.ts';
import { foreignFile, type GuideFacts, type VendorFile } from '../../contract/guide.ts';

/** Huawei's credentials (protocol/huawei.md#access-tokens). */
export const huaweiGuide: GuideFacts = {
  name: 'huawei',
  example: { appId: '101234567', appSecret: '0123456789abcdef0123456789abcdef' },
  askedSecret: 'appSecret',
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
