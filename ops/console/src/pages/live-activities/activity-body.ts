import type { ActivityRequest } from '../../api/live-activities.ts';
import type { JsonRecord } from '../../draft/json-text.ts';
import { isoTime } from '../../kit/form/values.ts';
import { parsedBody } from '../compose/draft-state.ts';

/** Fields of the form for a Live Activity push, as the person entered them. */
export interface Entered {
  action: ActivityRequest['action'];
  event: 'update' | 'end';
  attributesType: string;
  activityId: string;
  channel: string;
  attributes: string;
  contentState: string;
  where: string;
  title: string;
  text: string;
  priority: '' | '10' | '5' | '1';
  staleDate: string;
  dismissalDate: string;
  prod: 'prod' | 'dev';
}

export const emptyEntered: Entered = {
  action: 'start',
  event: 'update',
  attributesType: '',
  activityId: '',
  channel: '',
  attributes: '{}',
  contentState: '{}',
  where: '{}',
  title: '',
  text: '',
  priority: '',
  staleDate: '',
  dismissalDate: '',
  prod: 'prod',
};

/** Event of a push. Only a broadcast chooses it apart from the action. */
export const eventOf = ({ action, event }: Entered): 'start' | 'update' | 'end' =>
  action === 'broadcast' ? event : action;

/** Members that are entered as JSON, by action. */
const jsonMembers = (entered: Entered) =>
  entered.action === 'start'
    ? (['contentState', 'attributes', 'where'] as const)
    : (['contentState'] as const);

/** Returns the request of a form. Returns undefined if a field with JSON has an error. */
export function requestOf(entered: Entered): ActivityRequest | undefined {
  const event = eventOf(entered);
  const values: Record<string, JsonRecord> = {};
  for (const member of jsonMembers(entered)) {
    const { body } = parsedBody(entered[member]);
    if (!body) return undefined;
    values[member] = body;
  }
  const { action, attributesType, title, text, priority, prod } = entered;
  const staleDate = event === 'end' ? undefined : isoTime(entered.staleDate);
  const dismissalDate = event === 'end' ? isoTime(entered.dismissalDate) : undefined;
  const alert = { ...(title ? { title } : {}), ...(text ? { body: text } : {}) };
  const body: JsonRecord = {
    event,
    prod,
    ...values,
    ...(event === 'start' ? { attributesType } : {}),
    ...(Object.keys(alert).length > 0 ? { alert } : {}),
    // The form offers priority 1 for a broadcast only.
    ...(priority === '' || (priority === '1' && action !== 'broadcast')
      ? {}
      : { priority: Number(priority) }),
    ...(staleDate === undefined ? {} : { staleDate }),
    ...(dismissalDate === undefined ? {} : { dismissalDate }),
  };
  return { action, name: action === 'broadcast' ? entered.channel : entered.activityId, body };
}
