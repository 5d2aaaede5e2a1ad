import i18next from 'i18next';
import {
  chineseBrandOf,
  displayName,
  isConnectorId,
  vendorConnector,
} from '../../../../shared/domain/labels.ts';
import { withNames } from './sentences.ts';

/**
 * Returns the name of a connector in the language of the page; the id of one that this page does
 * not know.
 */
export function connectorName(id: string): string {
  if (!isConnectorId(id)) return id;
  return i18next.language === 'zh' ? chineseBrandOf(id) : displayName(id);
}

/** Returns a sentence of the server with brands in place of the ids of connectors. */
export const withBrands = (sentence: string): string => withNames(sentence, connectorName);

/**
 * Returns the brand of a device whose vendor has this name in a message, such as `mz`; undefined
 * for others.
 */
export function vendorName(wireName: string): string | undefined {
  const id = vendorConnector(wireName);
  return id === undefined ? undefined : connectorName(id);
}
