import { useTranslation } from 'react-i18next';
import type { DescribedConnector } from '../../../api/manage/profiles.ts';
import chinese from './credential-help.zh.json';

interface Help {
  source: string;
  members: Record<string, string>;
}

const translated: Record<string, Help> = chinese;

/** Returns where the maker shows the credentials of a connector, and what it calls each member. */
export function useCredentialHelp({ id, help }: DescribedConnector) {
  const { i18n } = useTranslation();
  const shown: Help | null = i18n.language === 'zh' ? (translated[id] ?? help) : help;
  return {
    source: shown?.source,
    memberOf: (member: string): string | undefined => shown?.members[member],
  };
}
