import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import type { SmsSignature, SmsTemplate } from '../../../../../client/operations.ts';
import {
  type SmsTextKind,
  useSmsSignatures,
  useSmsTemplates,
  useSmsTextChange,
} from '../../../api/messages.ts';
import { useMay } from '../../../api/session.tsx';
import { Button } from '../../../kit/controls/button.tsx';
import { Confirm } from '../../../kit/controls/confirm.tsx';
import { Choice, TextArea, TextField } from '../../../kit/controls/field.tsx';
import { type Column, Table } from '../../../kit/data/table.tsx';
import { Badge, Time } from '../../../kit/data/values.tsx';
import { Panel } from '../../../kit/panel.tsx';
import { Empty, Failure, Loading } from '../../../kit/states.tsx';
import styles from './messages.module.css';

/** SMS templates and signatures. They are used after they are approved. */
export function SmsTexts({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const mayChange = useMay('operator');
  const templates = useSmsTemplates(appId);
  const signatures = useSmsSignatures(appId);
  return (
    <>
      <Panel title={t('sms.templates')}>
        <TextTable<SmsTemplate>
          {...{ appId, mayChange, list: templates }}
          kind="sms-templates"
          empty={t('sms.noTemplates')}
          more={[
            { key: 'type', title: t('sms.type'), cell: ({ type }) => t(`smsType.${type}`) },
            {
              key: 'text',
              title: t('sms.text'),
              isWide: true,
              cell: (template) => <Text {...template} />,
            },
          ]}
        />
      </Panel>
      {mayChange && <NewTemplate appId={appId} />}
      <Panel title={t('sms.signatures')}>
        <TextTable<SmsSignature>
          {...{ appId, mayChange, list: signatures }}
          kind="sms-signatures"
          empty={t('sms.noSignatures')}
          more={[]}
        />
      </Panel>
      {mayChange && <NewSignature appId={appId} />}
    </>
  );
}

/** Text of a template, its templates at providers, and its approved text if it differs. */
function Text({ text, active, providers = {} }: SmsTemplate) {
  const { t } = useTranslation();
  const isDifferent = active !== null && active.text !== text;
  return (
    <>
      {text}
      {providers.aliyun && <div className={styles.note}>Aliyun {providers.aliyun.code}</div>}
      {providers.tencent && <div className={styles.note}>Tencent Cloud {providers.tencent.id}</div>}
      {isDifferent && <div className={styles.note}>{t('sms.inUse', { text: active.text })}</div>}
    </>
  );
}

interface TextTableProps<T> {
  appId: string;
  kind: SmsTextKind;
  mayChange: boolean;
  list: { data: { results: T[] } | undefined; error: unknown; refetch: () => unknown };
  empty: string;
  more: Column<T>[];
}

function TextTable<T extends SmsSignature>(props: TextTableProps<T>) {
  const { t } = useTranslation();
  const { appId, kind, mayChange, list, empty, more } = props;
  if (list.error && !list.data)
    return <Failure error={list.error} retry={() => void list.refetch()} />;
  if (!list.data) return <Loading />;
  if (list.data.results.length === 0) return <Empty title={empty} />;
  const columns: Column<T>[] = [
    {
      key: 'name',
      title: t('sms.name'),
      isWide: more.length === 0,
      cell: ({ name }) => <code>{name}</code>,
    },
    ...more,
    {
      key: 'status',
      title: t('pushes.state'),
      cell: ({ status }) => (
        <Badge tone={status === 'approved' ? 'good' : 'warn'}>{t(`smsStatus.${status}`)}</Badge>
      ),
    },
    {
      key: 'updated',
      title: t('profiles.updated'),
      cell: ({ updatedAt }) => <Time at={updatedAt} />,
    },
    ...(mayChange
      ? [
          {
            key: 'actions',
            title: t('operating.actions'),
            cell: (row: T) => <Acts appId={appId} kind={kind} row={row} />,
          },
        ]
      : []),
  ];
  return (
    <Table
      label={t(`smsKind.${kind}`)}
      columns={columns}
      rows={list.data.results}
      keyOf={({ name }) => name}
    />
  );
}

function Acts({
  appId,
  kind,
  row: { name, status },
}: {
  appId: string;
  kind: SmsTextKind;
  row: SmsSignature;
}) {
  const { t } = useTranslation();
  const { approve, remove } = useSmsTextChange(appId, kind);
  const error = approve.error ?? remove.error;
  return (
    <div className={styles.acts}>
      {status === 'pending' && (
        <Button
          isBusy={approve.isPending}
          onClick={() => approve.mutate(name)}
          aria-label={t('sms.approveOf', { name })}
        >
          {t('sms.approve')}
        </Button>
      )}
      <Confirm
        trigger={t('sms.delete')}
        label={t('sms.deleteOf', { name })}
        title={t('sms.deleteTitle', { name })}
        action={t('sms.deleteNow')}
        disabled={remove.isPending}
        onConfirm={() => remove.mutate(name)}
      >
        {t('sms.deleteText')}
      </Confirm>
      {error && <Failure error={error} />}
    </div>
  );
}

/** True if a text is empty or JSON. */
function isJson(text: string): boolean {
  try {
    return text.trim() === '' || JSON.parse(text) !== undefined;
  } catch {
    return false;
  }
}

const maxCharacters = 500;
const types = ['verification', 'notification'] as const;

/**
 * Form for a template. It replaces a template of the same name. The approved text stays in use
 * until the new text is approved.
 */
export function NewTemplate({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const [name, setName] = useState('');
  const [type, setType] = useState<SmsTemplate['type']>('verification');
  const [text, setText] = useState('');
  const [providers, setProviders] = useState('');
  const { put } = useSmsTextChange(appId, 'sms-templates');
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    // The service checks the members.
    const parsed = providers.trim() === '' ? {} : { providers: JSON.parse(providers) };
    put.mutate({ name, template: { type, text, ...parsed } });
  };
  return (
    <Panel title={t('sms.writeTemplate')}>
      <form className={styles.form} onSubmit={onSubmit}>
        <div className={styles.pair}>
          <TextField
            required
            label={t('sms.name')}
            value={name}
            onChange={(event) => setName(event.target.value)}
          />
          <Choice
            label={t('sms.type')}
            value={type}
            onChange={(event) =>
              setType(types.find((one) => one === event.target.value) ?? 'verification')
            }
          >
            {types.map((value) => (
              <option key={value} value={value}>
                {t(`smsType.${value}`)}
              </option>
            ))}
          </Choice>
        </div>
        <TextArea
          required
          label={t('sms.text')}
          hint={t('sms.textHint', { open: '{{', close: '}}' })}
          maxLength={maxCharacters}
          rows={2}
          value={text}
          onChange={(event) => setText(event.target.value)}
        />
        <TextArea
          label={t('sms.providers')}
          hint={t('sms.providersHint')}
          placeholder='{"aliyun": {"code": "SMS_153055065"}, "tencent": {"id": "1234567"}}'
          rows={2}
          value={providers}
          error={isJson(providers) ? undefined : t('sms.providersNotJson')}
          onChange={(event) => setProviders(event.target.value)}
        />
        {put.error && <Failure error={put.error} />}
        <Button type="submit" isBusy={put.isPending} disabled={!isJson(providers)}>
          {t('sms.saveTemplate')}
        </Button>
      </form>
    </Panel>
  );
}

/** Form for a signature. A signature precedes the text of each SMS. */
function NewSignature({ appId }: { appId: string }) {
  const { t } = useTranslation();
  const [name, setName] = useState('');
  const { put } = useSmsTextChange(appId, 'sms-signatures');
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    put.mutate({ name });
  };
  return (
    <Panel title={t('sms.addSignature')}>
      <form className={styles.form} onSubmit={onSubmit}>
        <TextField
          required
          label={t('sms.name')}
          hint={t('sms.signatureHint')}
          value={name}
          onChange={(event) => setName(event.target.value)}
        />
        {put.error && <Failure error={put.error} />}
        <Button type="submit" isBusy={put.isPending}>
          {t('sms.saveSignature')}
        </Button>
      </form>
    </Panel>
  );
}
