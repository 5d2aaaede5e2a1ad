import { useMemo, useState } from 'react';
import {
  isRecord,
  type JsonRecord,
  JsonTextError,
  parseJsonText,
  printJson,
} from '../../draft/json-text.ts';

/** Draft of a push: one JSON text, which form, editor and curl show. */
export interface Draft {
  text: string;
  /** The text as an object; of a text with a fault, the object before the fault. */
  body: JsonRecord;
  fault: JsonTextError | 'noObject' | undefined;
  /** The body in one line, as it is sent; undefined while the text has a fault. */
  sent: string | undefined;
  setText(text: string): void;
  /** Changes the body; does nothing while the text has a fault. */
  edit(change: (body: JsonRecord) => JsonRecord): void;
  /** Forgets the draft, in this tab too. */
  clear(): void;
}

export const emptyBody: JsonRecord = { where: {}, data: {} };

const storageKey = (appId: string) => `carillon-draft:${appId}`;

/** Returns the draft that this tab keeps for an app; undefined without one. */
export const storedDraft = (appId: string): string | undefined =>
  sessionStorage.getItem(storageKey(appId)) ?? undefined;

export const storeDraft = (appId: string, body: JsonRecord): void =>
  sessionStorage.setItem(storageKey(appId), printJson(body, 2));

/** Keeps a draft in this tab until it is sent or cleared. */
export function useDraft(appId: string): Draft {
  const [text, setShown] = useState(() => storedDraft(appId) ?? printJson(emptyBody, 2));
  const [valid, setValid] = useState<JsonRecord>(() => parsedBody(text).body ?? emptyBody);
  const { body, fault } = useMemo(() => parsedBody(text), [text]);
  const setText = (next: string) => {
    setShown(next);
    sessionStorage.setItem(storageKey(appId), next);
    const found = parsedBody(next).body;
    if (found) setValid(found);
  };
  return {
    text,
    body: body ?? valid,
    fault,
    sent: body && printJson(body),
    setText,
    edit: (change) => {
      if (body) setText(printJson(change(body), 2));
    },
    clear: () => {
      setText(printJson(emptyBody, 2));
      sessionStorage.removeItem(storageKey(appId));
    },
  };
}

/** Returns the body that a text is, or what is wrong with it. */
export function parsedBody(text: string): { body?: JsonRecord; fault?: Draft['fault'] } {
  try {
    const value = parseJsonText(text);
    return isRecord(value) ? { body: value, fault: undefined } : { fault: 'noObject' };
  } catch (error) {
    if (error instanceof JsonTextError) return { fault: error };
    throw error;
  }
}
