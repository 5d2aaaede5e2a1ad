import i18next from 'i18next';
import {
  chineseBrandOf,
  displayName,
  isConnectorId,
  vendorConnector,
} from '../../../../shared/domain/labels.ts';
import { withNames } from './sentences.ts';

/**
 * Returns the name of a connector in the page's language. Returns the id of an unknown connector.
 */
export function connectorName(id: string): string {
  if (!isConnectorId(id)) return id;
  return i18next.language === 'zh' ? chineseBrandOf(id) : displayName(id);
}

/** Replaces connector ids in a sentence of the server with brands. */
export const withBrands = (sentence: string): string => withNames(sentence, connectorName);

/**
 * Returns the brand for a vendor name as used in messages, such as `mz`. Returns undefined for
 * other names.
 */
export function vendorName(wireName: string): string | undefined {
  const id = vendorConnector(wireName);
  return id === undefined ? undefined : connectorName(id);
}
