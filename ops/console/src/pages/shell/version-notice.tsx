import { useQuery } from '@tanstack/react-query';
import { useTranslation } from 'react-i18next';
import { Button } from '../../kit/controls/button.tsx';
import { Notice } from '../../kit/notice.tsx';

const lookEveryMs = 60_000;
/** The first look is not among the requests that the page needs to show itself. */
const firstLookMs = 2000;

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
    initialData: __BUILD__,
    refetchInterval: ({ state }) => (state.dataUpdateCount === 0 ? firstLookMs : lookEveryMs),
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
