import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';

/** Help on the credentials of one connector, for operators who fill in a push profile. */
export interface CredentialGuide {
  /** Sentence that says where the vendor shows the credentials. */
  source: string;
  /** One line for each member of the credentials that belongs to this gateway, required members first. */
  members: Readonly<Record<string, string>>;
  /** Credentials of the right shape with made-up values. */
  example: JsonObject;
  /** Files of the vendor that `carillon profile put` takes as they were downloaded, a line each. */
  files: readonly string[];
  /** True where the files may be a key or certificate in PEM, or a PKCS#12 file. */
  takesKeyFiles?: boolean;
  /** Member that the vendor's files lack: the command asks for it or reads it from a file. */
  askedSecret?: { member: string; question: string };
  /** Reads a JSON file as downloaded from the vendor; undefined: not a file of this vendor. */
  fromFile?(document: JsonObject): VendorFile | undefined;
  /** Members that hold the content of such a file. */
  fileMembers?: readonly string[];
  /** Id of digits only, which no other member is: shows that two were swapped. */
  numericId?: string;
}

/** Members of the credentials in a file, or the reason why it is the wrong file. */
export type VendorFile =
  | {
      members: JsonObject;
      /** Name of the file. */
      file: string;
      /** Sentence about what the file does not hold. */
      lacks?: string;
    }
  | { error: string };

/** Types of Google's credential files that are no key of a service account. */
const otherGoogleTypes: ReadonlyMap<unknown, string> = new Map([
  ['external_account', 'of the type external_account (workload identity federation), which holds no key'],
  ['external_account_authorized_user', 'of the type external_account_authorized_user, which holds no key'],
  ['authorized_user', 'of the type authorized_user, the login of a person'],
  ['impersonated_service_account', 'of the type impersonated_service_account, which holds no key'],
  ['gdch_service_account', 'of the type gdch_service_account, of Google Distributed Cloud'],
]);

/**
 * Names a file of another kind or vendor by its members, with what it is for; undefined for a file
 * that is not known.
 */
export function foreignFile(document: JsonObject): string | undefined {
  const { client, installed, project_info: project, type, web } = document;
  const other = otherGoogleTypes.get(type);
  if (other !== undefined) return `a file of Google ${other}`;
  if (isJsonObject(project) && client !== undefined)
    return 'google-services.json, which belongs into the app';
  if (isJsonObject(installed) || isJsonObject(web)) return 'a file of an OAuth client (client_secret_….json)';
  if (typeof document.apiKey === 'string' && typeof document.authDomain === 'string')
    return 'the configuration of Firebase for a web app';
  if (type === 'service_account') return 'a service account file of Google';
  if (typeof document.sub_account === 'string') return 'a service account file of Huawei';
  if (isJsonObject(document.app_info) || (isJsonObject(client) && client.app_id !== undefined))
    return 'agconnect-services.json of Huawei, which belongs into the app';
  return undefined;
}

/** Members of the profiles of every gateway (protocol/admin-api.md#credentials-of-a-push-profile). */
export const commonMembers: Readonly<Record<string, string>> = {
  endpoint: 'base URL in place of the own one of the gateway, for a relay or a test',
  authEndpoint: 'base URL in place of the one that hands out access tokens',
  ca: 'PEM certificates that are trusted beside those of the system',
  transport: 'without effect; profiles of earlier versions have it',
  proxy: 'URL of an HTTP proxy to reach the gateway through, where the gateway allows one',
  ratePerSecond: 'the rate that the gateway grants this app, where it is not the published one',
};
