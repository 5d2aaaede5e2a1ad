import { useTranslation } from 'react-i18next';
import type { Language } from '../../../../../shared/domain/texts/catalogue.ts';
import { subjectIn, writeFinding } from '../../../../../shared/domain/texts/texts.ts';
import type { DoctorFinding } from '../../../../client/operations.ts';
import { useDoctor } from '../../api/operating.ts';
import { Button } from '../../kit/controls/button.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Badge, Marked, type Tone } from '../../kit/data/values.tsx';
import { Panel } from '../../kit/panel.tsx';
import { Failure, Loading } from '../../kit/states.tsx';
import { useLanguage } from '../../text/explanation.ts';
import styles from './operating.module.css';

const tones: Record<DoctorFinding['level'], Tone> = { ok: 'good', warn: 'warn', fail: 'bad' };
const order: DoctorFinding['level'][] = ['fail', 'warn', 'ok'];

/**
 * Checks of the service, or its checks for production, worst first, with recommended actions. A
 * Chinese page also shows the English text, which can be searched for.
 */
export function Doctor({ isProduction = false }: { isProduction?: boolean }) {
  const { t } = useTranslation();
  const { data, error, isPending, isFetching, refetch } = useDoctor(isProduction);
  const title = t(isProduction ? 'doctor.production' : 'doctor.title');
  const refreshButton = (
    <Button isBusy={isFetching} onClick={() => void refetch()}>
      {t('doctor.again')}
    </Button>
  );
  const columns: Column<DoctorFinding>[] = [
    {
      key: 'level',
      title: t('pushes.state'),
      cell: ({ level }) => <Badge tone={tones[level]}>{t(`doctorLevel.${level}`)}</Badge>,
    },
    {
      key: 'subject',
      title: t('doctor.subject'),
      cell: (finding) => <Subject finding={finding} />,
    },
    {
      key: 'sentence',
      title: t('doctor.finding'),
      isWide: true,
      cell: (finding) => <Sentence finding={finding} />,
    },
  ];
  return (
    <Panel title={title} side={refreshButton}>
      {isPending ? (
        <Loading />
      ) : error && !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : (
        <Table
          label={title}
          columns={columns}
          rows={[...data.results].sort((a, b) => order.indexOf(a.level) - order.indexOf(b.level))}
          keyOf={({ subject, code, params }) => JSON.stringify([subject, code, params])}
        />
      )}
    </Panel>
  );
}

function Subject({ finding: { subject } }: { finding: DoctorFinding }) {
  const language = useLanguage();
  return language === 'zh' ? subjectIn('zh', subject) : <span lang="en">{subject}</span>;
}

/** Finding and recommended action. A Chinese page shows the English text below. */
function Sentence({ finding }: { finding: DoctorFinding }) {
  const language = useLanguage();
  const textIn = (one: Language) => {
    const { detail, advice } = writeFinding(finding, one);
    if (advice === '') return detail;
    return one === 'zh' ? `${detail}。${advice}` : `${detail}. ${advice}`;
  };
  const original = (
    <span lang="en">
      <Marked text={textIn('en')} />
    </span>
  );
  if (language !== 'zh') return original;
  return (
    <>
      <span className={styles.finding}>
        <Marked text={textIn('zh')} />
      </span>
      <small className={styles.original}>{original}</small>
    </>
  );
}
