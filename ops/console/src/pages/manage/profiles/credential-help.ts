import { useTranslation } from 'react-i18next';
import { guideOf } from '../../../../../../connectors/guides.ts';
import { isConnectorId } from '../../../../../../shared/domain/labels.ts';
import type { DescribedConnector } from '../../../api/profiles.ts';

/**
 * Returns where the vendor shows the credentials of a connector, and the vendor's name for each
 * member.
 */
export function useCredentialHelp({ id }: Pick<DescribedConnector, 'id'>) {
  const { i18n } = useTranslation();
  const guide = isConnectorId(id) ? guideOf(id, i18n.language === 'zh' ? 'zh' : 'en') : undefined;
  return {
    source: guide?.source,
    memberOf: (member: string): string | undefined => guide?.members[member],
  };
}
