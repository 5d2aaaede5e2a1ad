import { getRouteApi, Link } from '@tanstack/react-router';
import { type FormEvent, useState } from 'react';
import { useTranslation } from 'react-i18next';
import { requestOf as callOf } from '../../../../client/client.ts';
import { type ActivityDryRun, channelPage, useActivityActions } from '../../api/live-activities.ts';
import { useMay } from '../../api/session.tsx';
import { JsonTextError } from '../../draft/json-text.ts';
import { Button } from '../../kit/controls/button.tsx';
import { Commands } from '../../kit/controls/copy.tsx';
import { Choice, TextField } from '../../kit/controls/field.tsx';
import { CodeArea } from '../../kit/form/code-area.tsx';
import { Facts, JsonPanel, Notice, PageHeader, Panel } from '../../kit/panel.tsx';
import { Failure } from '../../kit/states.tsx';
import { useForecastText } from '../../text/explanation.ts';
import { formatCount } from '../../text/format.ts';
import { parsedBody } from '../compose/draft-state.ts';
import { useFaultText } from '../compose/views/views.tsx';
import { type Entered, emptyEntered, eventOf, requestOf } from './activity-body.ts';
import { ActivityPreview } from './activity-preview.tsx';
import { Channels } from './channels.tsx';
import styles from './live-activities.module.css';

const route = getRouteApi('/apps/$appId/pushes/live-activities');

const actions = ['start', 'update', 'end', 'broadcast'] as const;

/** Starts, updates and ends Live Activities, and manages broadcast channels. */
export function LiveActivities() {
  const { t } = useTranslation();
  const { appId } = route.useParams();
  const maySend = useMay('sender');
  const [entered, setEntered] = useState(emptyEntered);
  return (
    <>
      <PageHeader title={t('liveActivity.title')} />
      {maySend && <Sending appId={appId} entered={entered} setEntered={setEntered} />}
      <Channels
        appId={appId}
        prod={entered.prod}
        choose={(channel) => setEntered({ ...entered, action: 'broadcast', channel })}
      />
      <Commands
        request={callOf('listAppBroadcastChannels', channelPage(appId, entered.prod))}
        command={`live-activity channels --app ${appId}`}
      />
    </>
  );
}

interface FormProps {
  entered: Entered;
  setEntered: (entered: Entered) => void;
}

/** Form of a push, with its dry run. It is sent only after a dry run of the same content. */
function Sending({ appId, entered, setEntered }: FormProps & { appId: string }) {
  const { t } = useTranslation();
  const { explain, send } = useActivityActions(appId);
  const request = requestOf(entered);
  const dryRun = explain.data;
  const isFresh =
    dryRun !== undefined && JSON.stringify(dryRun.request) === JSON.stringify(request);
  const onSubmit = (event: FormEvent) => {
    event.preventDefault();
    send.reset();
    if (request) explain.mutate(request);
  };
  return (
    <>
      <Panel title={t('liveActivity.new')}>
        <form className={styles.form} onSubmit={onSubmit}>
          <Target entered={entered} setEntered={setEntered} />
          <Content entered={entered} setEntered={setEntered} />
          {explain.error && <Failure error={explain.error} />}
          {send.error && <Failure error={send.error} />}
          <div className={styles.acts}>
            <Button type="submit" isBusy={explain.isPending} disabled={!request}>
              {t('liveActivity.dryRun')}
            </Button>
            <Button
              variant="primary"
              isBusy={send.isPending}
              disabled={!isFresh}
              onClick={() => request && send.mutate(request, { onSuccess: () => explain.reset() })}
            >
              {t('liveActivity.send')}
            </Button>
          </div>
          {send.data && (
            <Notice variant="plain">
              {t('liveActivity.sent')}{' '}
              <Link to="/apps/$appId/pushes/$pushId" params={{ appId, pushId: send.data.objectId }}>
                {t('liveActivity.record')}
              </Link>
            </Notice>
          )}
        </form>
      </Panel>
      <ActivityPreview appId={appId} entered={entered} />
      {isFresh && <DryRun dryRun={dryRun} />}
    </>
  );
}

/** Returns the properties of the input for a member. */
const fieldOf =
  ({ entered, setEntered }: FormProps) =>
  (name: keyof Entered) => ({
    value: entered[name],
    onChange: (event: { target: { value: string } }) =>
      setEntered({ ...entered, [name]: event.target.value }),
  });

function Target(props: FormProps) {
  const { t } = useTranslation();
  const { action } = props.entered;
  const field = fieldOf(props);
  return (
    <div className={styles.pair}>
      <Choice label={t('liveActivity.action')} {...field('action')}>
        {actions.map((one) => (
          <option key={one} value={one}>
            {t(`liveActivityAction.${one}`)}
          </option>
        ))}
      </Choice>
      {action === 'start' && (
        <TextField
          required
          label={t('liveActivity.attributesType')}
          hint={t('liveActivity.attributesTypeHint')}
          autoComplete="off"
          {...field('attributesType')}
        />
      )}
      {(action === 'update' || action === 'end') && (
        <TextField
          required
          label={t('liveActivity.activityId')}
          autoComplete="off"
          {...field('activityId')}
        />
      )}
      {action === 'broadcast' && (
        <>
          <TextField
            required
            label={t('liveActivity.channel')}
            autoComplete="off"
            {...field('channel')}
          />
          <Choice label={t('liveActivity.event')} {...field('event')}>
            <option value="update">{t('liveActivityAction.update')}</option>
            <option value="end">{t('liveActivityAction.end')}</option>
          </Choice>
        </>
      )}
      <Choice label={t('liveActivity.prod')} {...field('prod')}>
        <option value="prod">{t('liveActivity.production')}</option>
        <option value="dev">{t('liveActivity.sandbox')}</option>
      </Choice>
      <Choice
        label={t('liveActivity.priority')}
        hint={t('liveActivity.priorityHint')}
        {...field('priority')}
      >
        <option value="">{t('liveActivity.priorityDefault')}</option>
        <option value="10">10</option>
        <option value="5">5</option>
        {action === 'broadcast' && <option value="1">1</option>}
      </Choice>
    </div>
  );
}

function Content(props: FormProps) {
  const { t } = useTranslation();
  const { entered } = props;
  const field = fieldOf(props);
  const event = eventOf(entered);
  return (
    <>
      <JsonField label={t('liveActivity.state')} {...field('contentState')} />
      {event === 'start' && (
        <>
          <JsonField label={t('liveActivity.attributes')} {...field('attributes')} />
          <JsonField label={t('liveActivity.where')} {...field('where')} />
        </>
      )}
      <div className={styles.pair}>
        <TextField
          label={t('liveActivity.alertTitle')}
          required={event === 'start' && entered.text === ''}
          {...field('title')}
        />
        <TextField label={t('liveActivity.alertBody')} {...field('text')} />
        {event === 'end' ? (
          <TextField
            type="datetime-local"
            label={t('liveActivity.dismissalDate')}
            {...field('dismissalDate')}
          />
        ) : (
          <TextField
            type="datetime-local"
            label={t('liveActivity.staleDate')}
            {...field('staleDate')}
          />
        )}
      </div>
    </>
  );
}

function JsonField({
  label,
  value,
  onChange,
}: {
  label: string;
  value: string;
  onChange: (event: { target: { value: string } }) => void;
}) {
  const { fault } = parsedBody(value);
  const error = useFaultText(fault);
  return (
    <CodeArea
      label={label}
      error={error}
      fault={fault instanceof JsonTextError ? fault : undefined}
      rows={4}
      value={value}
      onChange={onChange}
    />
  );
}

/** Result of a dry run: the devices, the limits, and the payload. */
function DryRun({ dryRun: { forecast } }: { dryRun: ActivityDryRun }) {
  const { t } = useTranslation();
  const forecastText = useForecastText();
  const apns = forecast.connectors.apns;
  return (
    <>
      <Panel title={t('liveActivity.dryRunOf')}>
        <Facts
          rows={[
            [t('liveActivity.withToken'), formatCount(forecast.withToken)],
            [t('liveActivity.withoutToken'), formatCount(forecast.withoutToken)],
            [t('liveActivity.bytes'), formatCount(apns?.payloadBytes ?? 0)],
          ]}
        />
        {forecast.texts.limits.length > 0 && (
          <ul>
            {forecast.texts.limits.map((one) => (
              <li key={one.code}>{forecastText(one)}</li>
            ))}
          </ul>
        )}
      </Panel>
      {apns && <JsonPanel title={t('liveActivity.payload')} value={apns.payload} />}
    </>
  );
}
