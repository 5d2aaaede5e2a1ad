import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { Button } from '../../kit/controls/button.tsx';
import { Notice } from '../../kit/notice.tsx';

const lookEveryMs = 60_000;

/** Says that the server has another version of the console than this page, which may not know its replies. */
export function VersionNotice() {
  const { t } = useTranslation();
  const { data } = useQuery({
    queryKey: ['build'],
    queryFn: async ({ signal }) => {
      const response = await fetch('/console/build.json', { signal });
      const reply: unknown = response.ok ? await response.json() : {};
      return typeof reply === 'object' && reply !== null && 'digest' in reply ? reply.digest : null;
    },
    // The page has just been loaded: the first request follows after a minute.
    initialData: __BUILD__,
    refetchInterval: lookEveryMs,
    staleTime: lookEveryMs,
    retry: false,
  });
  if (typeof data !== 'string' || data === __BUILD__) return null;
  return (
    <Notice look="plain">
      {t('shell.newVersion')}
      <Button onClick={() => window.location.reload()}>{t('shell.reload')}</Button>
    </Notice>
  );
}
