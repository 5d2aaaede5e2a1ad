import { guideOf } from '../../../../../../connectors/guides.ts';
import { type ConnectorId, isConnectorId } from '../../../../../../shared/domain/labels.ts';
import { isObject, type SchemaField } from '../../../kit/form/schema.ts';
import { type Draft, textOf } from '../../../kit/form/values.ts';

interface DroppedFile {
  name: string;
  text: string;
}

/**
 * Form values from a file with a sentence about missing values, or the reason why the file is
 * wrong.
 */
export type FileContent =
  | { draft: Draft; lacks?: string | undefined }
  | {
      /** Key of the texts, or a sentence of the connector's guide. */
      fault: 'unknownFile' | 'binaryFile' | { sentence: string };
    };

/** Name of Apple's key file. It contains the Key ID. */
const appleKeyName = /^AuthKey_([A-Za-z0-9]{10})\.p8$/;
/** Names of binary files: PKCS#12, and certificates in the form that Apple provides. */
const binaryName = /\.(p12|pfx|cer|der)$/i;

/**
 * Returns the form values of a file. A PEM file fills the key or the certificate, a JSON file the
 * members that it names, and a vendor's file the members that the connector's guide finds in it.
 */
export function readDroppedFile(
  fields: readonly SchemaField[],
  connector: string,
  { name, text }: DroppedFile,
): FileContent {
  const document = jsonOf(text);
  if (!document) {
    const draft = pemDraft(fields, { name, text });
    return draft ? { draft } : { fault: binaryName.test(name) ? 'binaryFile' : 'unknownFile' };
  }
  const file = isConnectorId(connector) ? guideFile(connector, document) : undefined;
  if (file && 'error' in file) return { fault: { sentence: file.error } };
  const members = file?.members ?? document;
  const named = fields.filter((field) => members[field.name] !== undefined);
  if (named.length === 0) return { fault: 'unknownFile' };
  const draft = Object.fromEntries(
    named.map((field) => [field.name, textOf(field, members[field.name])]),
  );
  return { draft, lacks: file?.lacks };
}

type Guide = NonNullable<ReturnType<typeof guideOf>>;
type JsonFile = Parameters<NonNullable<Guide['fromFile']>>[0];

const guideFile = (connector: ConnectorId, document: JsonFile) =>
  guideOf(connector)?.fromFile?.(document);

function pemDraft(fields: readonly SchemaField[], { name, text }: DroppedFile): Draft | undefined {
  const draft: Draft = {};
  const has = (member: string) => fields.some((field) => field.name === member);
  const blocks = text.match(/-----BEGIN ([A-Z0-9 ]+)-----[^-]+-----END \1-----/g) ?? [];
  for (const block of blocks) {
    const member = block.includes('PRIVATE KEY') ? 'privateKey' : 'certificate';
    if (has(member)) draft[member] = `${draft[member] ?? ''}${block}\n`;
  }
  const keyId = appleKeyName.exec(name)?.[1];
  if (keyId && has('keyId')) draft.keyId = keyId;
  return Object.keys(draft).length > 0 ? draft : undefined;
}

function jsonOf(text: string): JsonFile | undefined {
  try {
    const value: JsonFile | null = JSON.parse(text.replace(/^\ufeff/, ''));
    return isObject(value) ? value : undefined;
  } catch {
    return undefined;
  }
}
