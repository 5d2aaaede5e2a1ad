import { useEffect, useMemo, useState } from 'react';
import {
  isRecord,
  type JsonRecord,
  JsonTextError,
  parseJsonText,
  printJson,
} from '../../draft/json-text.ts';

/** Draft of a push. Form, editor and curl view show the same JSON text. */
export interface Draft {
  text: string;
  /** Body of the text. If the text has an error, the last valid body. */
  body: JsonRecord;
  fault: JsonTextError | 'noObject' | undefined;
  /** Body in one line, as it is sent. Undefined if the text has an error. */
  sent: string | undefined;
  setText(text: string): void;
  /** Changes the body. Does nothing if the text has an error. */
  edit(change: (body: JsonRecord) => JsonRecord): void;
  /** Deletes the draft, also from the session storage of this tab. */
  clear(): void;
}

export const emptyBody: JsonRecord = { where: {}, data: {} };

const storageKey = (appId: string) => `carillon-draft:${appId}`;

/** Returns the draft of an app that is stored in this tab, or undefined. */
export const storedDraft = (appId: string): string | undefined =>
  sessionStorage.getItem(storageKey(appId)) ?? undefined;

export const storeDraft = (appId: string, body: JsonRecord): void =>
  sessionStorage.setItem(storageKey(appId), printJson(body, 2));

/** Stores a draft in this tab until it is sent or cleared. */
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

/** Returns the body in a text, or the error in the text. */
export function parsedBody(text: string): { body?: JsonRecord; fault?: Draft['fault'] } {
  try {
    const value = parseJsonText(text);
    return isRecord(value) ? { body: value, fault: undefined } : { fault: 'noObject' };
  } catch (error) {
    if (error instanceof JsonTextError) return { fault: error };
    throw error;
  }
}

/** Pause of the typing after which the devices of a condition are counted or read. */
export const countDelayMs = 400;

/** Returns a value after it has stayed unchanged for `delayMs`. Returns undefined before. */
export function useDebounced<T>(value: T, delayMs: number): T | undefined {
  const [rested, setRested] = useState<T>();
  useEffect(() => {
    const timer = setTimeout(() => setRested(() => value), delayMs);
    return () => clearTimeout(timer);
  }, [value, delayMs]);
  return rested;
}
