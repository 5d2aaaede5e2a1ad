import i18next from 'i18next';
import { chineseBrandOf, displayName, isConnectorId } from '../../../../shared/domain/labels.ts';

/** Returns the name of a connector in the language of the page; the id of one that this page does not know. */
export function connectorName(id: string): string {
  if (!isConnectorId(id)) return id;
  return i18next.language === 'zh' ? chineseBrandOf(id) : displayName(id);
}
