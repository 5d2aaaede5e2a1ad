import { isJsonObject, type JsonObject } from '../../shared/domain/json.ts';
import type { Language } from '../../shared/domain/texts/catalogue.ts';
import credentialTexts from '../../shared/domain/texts/credentials.json' with { type: 'json' };

/**
 * Help texts on credentials by language and gateway. The type requires a Chinese text for each
 * English text.
 */
const texts: Readonly<Record<Language, typeof credentialTexts.en>> = credentialTexts;

/** Help on the credentials of a connector, for operators who create a push profile. */
export interface CredentialGuide extends Omit<GuideFacts, 'name'> {
  /** Sentence that says where to find the credentials in the vendor's console. */
  source: string;
  /** One line of help for each member of the credentials, required members first. */
  members: Readonly<Record<string, string>>;
  /** Files of the vendor that `carillon profile put` accepts as downloaded. One line per file. */
  files: readonly string[];
  /** Question for the member that the vendor's files do not contain. */
  question?: string;
}

/** Properties of the help on credentials that are not texts. */
export interface GuideFacts {
  /** Name of the gateway in `shared/domain/texts/credentials.json`. */
  name: Exclude<keyof typeof credentialTexts.en, 'every'>;
  /** Example of valid credentials with made-up values. */
  example: JsonObject;
  /** True if a file may be a key or certificate in PEM, or a PKCS#12 file. */
  takesKeyFiles?: boolean;
  /**
   * Member that the vendor's files do not contain. The command asks for it or reads it from a file.
   */
  promptedSecret?: string;
  /**
   * Reads a JSON file that was downloaded from the vendor. Returns undefined if the file is not
   * from this vendor.
   */
  fromFile?(document: JsonObject): VendorFile | undefined;
  /** Members of the credentials that contain a whole file of the vendor. */
  fileMembers?: readonly string[];
  /**
   * Member that contains only digits. No other member does, so a swap of two members is detected.
   */
  numericId?: string;
}

/** Returns the help on credentials in a language. */
export const guideIn = ({ name, ...facts }: GuideFacts, language: Language): CredentialGuide => ({
  ...facts,
  ...texts[language][name],
});

/**
 * Returns the help on the members that profiles of all gateways have
 * (protocol/admin-api.md#credentials-of-a-push-profile).
 */
export const commonMembersIn = (language: Language): Readonly<Record<string, string>> =>
  texts[language].every.members;

/** English help on the common members. */
export const commonMembers = commonMembersIn('en');

/** Members of the credentials from a file, or the error why the file is wrong. */
export type VendorFile =
  | {
      members: JsonObject;
      /** Name of the file. */
      file: string;
      /** Sentence about the members that the file does not contain. */
      lacks?: string;
    }
  | { error: string };

/** Types of Google credential files without a service account key, with a description. */
const otherGoogleTypes: ReadonlyMap<unknown, string> = new Map([
  [
    'external_account',
    'of the type external_account (workload identity federation), which holds no key',
  ],
  [
    'external_account_authorized_user',
    'of the type external_account_authorized_user, which holds no key',
  ],
  ['authorized_user', 'of the type authorized_user, the login of a person'],
  ['impersonated_service_account', 'of the type impersonated_service_account, which holds no key'],
  ['gdch_service_account', 'of the type gdch_service_account, of Google Distributed Cloud'],
]);

/**
 * Recognizes a file of another kind or vendor by its members and returns its description. Returns
 * undefined if the file is unknown.
 */
export function foreignFile(document: JsonObject): string | undefined {
  const { client, installed, project_info: project, type, web } = document;
  const other = otherGoogleTypes.get(type);
  if (other !== undefined) return `a file of Google ${other}`;
  if (isJsonObject(project) && client !== undefined)
    return 'google-services.json, which belongs into the app';
  if (isJsonObject(installed) || isJsonObject(web))
    return 'a file of an OAuth client (client_secret_….json)';
  if (typeof document.apiKey === 'string' && typeof document.authDomain === 'string')
    return 'the configuration of Firebase for a web app';
  if (type === 'service_account') return 'a service account file of Google';
  if (typeof document.sub_account === 'string') return 'a service account file of Huawei';
  if (isJsonObject(document.app_info) || (isJsonObject(client) && client.app_id !== undefined))
    return 'agconnect-services.json of Huawei, which belongs into the app';
  return undefined;
}
