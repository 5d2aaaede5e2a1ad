import { useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { ListedChannel } from '../../../../client/operations.ts';
import { type Environment, useChannelActions, useChannels } from '../../api/live-activities.ts';
import { useMay } from '../../api/session.tsx';
import { Button } from '../../kit/controls/button.tsx';
import { Confirm } from '../../kit/controls/confirm.tsx';
import { Choice } from '../../kit/controls/field.tsx';
import { type Column, Table } from '../../kit/data/table.tsx';
import { Time } from '../../kit/data/values.tsx';
import { Panel } from '../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../kit/states.tsx';
import styles from './live-activities.module.css';

interface ChannelsProps {
  appId: string;
  prod: Environment;
  /** Called with the channel that a person chooses for a broadcast. */
  choose: (channel: string) => void;
}

/** Broadcast channels of an app: list, creation and deletion. */
export function Channels({ appId, prod, choose }: ChannelsProps) {
  const { t } = useTranslation();
  const mayManage = useMay('operator');
  const { data, error, isPending, refetch } = useChannels(appId, prod);
  const { create, remove } = useChannelActions(appId, prod);
  const [storage, setStorage] = useState<'none' | 'last'>('none');
  const columns = useColumns({ choose, remove: remove.mutate });
  const failure = create.error ?? remove.error;
  return (
    <Panel title={t('liveActivity.channels')}>
      {failure && <Failure error={failure} />}
      {isPending ? (
        <Loading rows={3} />
      ) : !data ? (
        <Failure error={error} retry={() => void refetch()} />
      ) : data.results.length === 0 ? (
        <Empty title={t('liveActivity.noChannels')} />
      ) : (
        <Table
          label={t('liveActivity.channels')}
          columns={columns}
          rows={data.results}
          keyOf={({ channel }) => channel}
        />
      )}
      {mayManage && data && (
        <div className={styles.create}>
          <Choice
            label={t('liveActivity.storage')}
            value={storage}
            onChange={(event) => setStorage(event.target.value === 'last' ? 'last' : 'none')}
          >
            <option value="none">{t('liveActivity.storageNone')}</option>
            <option value="last">{t('liveActivity.storageLast')}</option>
          </Choice>
          <Button isBusy={create.isPending} onClick={() => create.mutate(storage)}>
            {t('liveActivity.create')}
          </Button>
        </div>
      )}
    </Panel>
  );
}

function useColumns({
  choose,
  remove,
}: {
  choose: (channel: string) => void;
  remove: (channel: string) => void;
}): Column<ListedChannel>[] {
  const { t } = useTranslation();
  const mayManage = useMay('operator');
  const maySend = useMay('sender');
  const storages = {
    none: t('liveActivity.storageNone'),
    last: t('liveActivity.storageLast'),
  };
  return [
    {
      key: 'channel',
      title: t('liveActivity.channel'),
      isWide: true,
      cell: ({ channel }) => <code translate="no">{channel}</code>,
    },
    {
      key: 'storage',
      title: t('liveActivity.storage'),
      cell: ({ storage }) => (storage === null ? '–' : storages[storage]),
    },
    {
      key: 'created',
      title: t('liveActivity.created'),
      cell: ({ createdAt }) => (createdAt === null ? '–' : <Time at={createdAt} />),
    },
    {
      key: 'actions',
      title: t('operating.actions'),
      cell: ({ channel }) => (
        <span className={styles.acts}>
          {maySend && (
            <Button onClick={() => choose(channel)}>{t('liveActivityAction.broadcast')}</Button>
          )}
          {mayManage && (
            <Confirm
              trigger={t('liveActivity.delete')}
              label={t('liveActivity.deleteOf', { channel })}
              title={t('liveActivity.deleteTitle')}
              action={t('liveActivity.delete')}
              onConfirm={() => remove(channel)}
            >
              {t('liveActivity.deleteText')}
            </Confirm>
          )}
        </span>
      ),
    },
  ];
}
