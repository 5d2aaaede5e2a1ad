import { useTranslation } from 'react-i18next';
import { useSmsState } from '../../../api/messages.ts';
import { Badge } from '../../../kit/data/badge.tsx';
import { Time } from '../../../kit/data/time.tsx';
import { Facts, Panel } from '../../../kit/panel.tsx';
import { Failure, Loading } from '../../../kit/states.tsx';
import { formatCount, formatShare } from '../../../text/format.ts';

/** What pays for SMS, how much of the budgets is used, and the countries to which nothing is sent. */
export function Budgets({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const { data, error, isPending, refetch } = useSmsState(appId);
  if (isPending) return <Loading rows={4} />;
  if (error && !data) return <Failure error={error} retry={() => void refetch()} />;
  const { balance, free, day, suspended, conversion } = data;
  const ofLimit = ({ used, limit }: { used: number; limit: number }) =>
    t('overview.of', { done: formatCount(used), all: formatCount(limit) });
  return (
    <>
      <Panel title={t('budgets.title')}>
        <Facts
          rows={[
            [t('budgets.balance'), formatCount(balance)],
            [t('budgets.free'), ofLimit(free)],
            [t('budgets.day'), ofLimit(day)],
          ]}
        />
      </Panel>
      <Panel title={t('budgets.countries')}>
        {suspended.length + conversion.length === 0 && <p>{t('budgets.noCodes')}</p>}
        <Facts
          rows={[
            ...suspended.map(({ prefix, openUntil }): [string, React.ReactNode] => [
              `+${prefix}`,
              <span key={prefix}>
                <Badge tone="bad">{t('budgets.suspended')}</Badge> {t('user.until')} <Time at={openUntil} />
              </span>,
            ]),
            ...conversion
              .filter(({ prefix }) => !suspended.some((one) => one.prefix === prefix))
              .map(({ prefix, sent, used }): [string, React.ReactNode] => [
                `+${prefix}`,
                t('budgets.conversion', {
                  sent: formatCount(sent),
                  used: formatCount(used),
                  share: formatShare(used, sent),
                }),
              ]),
          ]}
        />
      </Panel>
    </>
  );
}
