import { useQuery } from '@tanstack/react-query';
import { Link, useLocation, useParams } from '@tanstack/react-router';
import { useEffect } from 'react';
import { useTranslation } from 'react-i18next';
import { PageHeader } from '../../kit/panel.tsx';
import { Loading } from '../../kit/states.tsx';
import { loadPage, Missing } from '../missing.tsx';
import styles from './guide.module.css';
import { GuideNodes } from './guide-nodes.tsx';
import { findGuide } from './guides.ts';

/** Guide of the documentation, in the language of the page if it is translated. */
export function GuidePage() {
  const { t, i18n } = useTranslation();
  const path = (useParams({ strict: false })._splat ?? '').replace(/\/$/, '');
  const guide = findGuide(path);
  const { data: nodes } = useQuery({
    queryKey: ['guide', path, guide?.language],
    queryFn: async () => (guide ? (await loadPage(guide.load)).default : []),
    staleTime: Number.POSITIVE_INFINITY,
    throwOnError: true,
  });
  useAnchor(nodes !== undefined);
  if (!guide) return <Missing />;
  const isTranslated = guide.language === i18n.language;
  const lang = isTranslated ? undefined : guide.language;
  return (
    <>
      <PageHeader
        title={guide.title}
        lang={lang}
        side={path !== '' && <Link to="/docs">{t('guides.index')}</Link>}
      >
        {!isTranslated && <span className={styles.note}>{t('guides.onlyEnglish')}</span>}
      </PageHeader>
      {nodes ? (
        <article className={styles.guide} lang={lang}>
          <GuideNodes nodes={nodes} />
        </article>
      ) : (
        <Loading />
      )}
    </>
  );
}

/** Scrolls to the anchor of the address when the guide is shown. */
function useAnchor(isShown: boolean): void {
  const { pathname, hash } = useLocation();
  // biome-ignore lint/correctness/useExhaustiveDependencies: another guide has other anchors.
  useEffect(() => {
    if (isShown && hash !== '') document.getElementById(hash)?.scrollIntoView();
  }, [isShown, pathname, hash]);
}
