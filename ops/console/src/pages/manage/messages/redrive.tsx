import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import { useMessageForecast, useMessageRedrive } from '../../../api/messages.ts';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Failure, Loading } from '../../../kit/states.tsx';
import { formatCount } from '../../../text/format.ts';

/** Sends all failed messages of an app again, after a dry run. */
export function MessageRedrive({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const [isAsked, setAsked] = useState(false);
  const { data, error } = useMessageForecast(appId, isAsked);
  const redrive = useMessageRedrive(appId);
  const { messages = 0, expired = 0, unreadable = 0, next = null } = data ?? {};
  const numbers = {
    messages: formatCount(messages),
    expired: formatCount(expired),
    unreadable: formatCount(unreadable),
  };
  return (
    <>
      {redrive.error && <Failure error={redrive.error} />}
      <Confirm
        trigger={t('redrive.messages')}
        title={t('redrive.messages')}
        action={data ? t('redrive.messagesNow', { messages: numbers.messages }) : t('redrive.counting')}
        look="primary"
        disabled={redrive.isPending}
        isBlocked={messages === 0 && next === null}
        onOpen={setAsked}
        onConfirm={() => redrive.mutate()}
      >
        <p>{t('redrive.messagesText')}</p>
        {error ? (
          <Failure error={error} />
        ) : data ? (
          <p>{t('redrive.messagesFound', numbers)}</p>
        ) : (
          <Loading />
        )}
        {next !== null && <p>{t('redrive.messagesMore')}</p>}
      </Confirm>
    </>
  );
}
