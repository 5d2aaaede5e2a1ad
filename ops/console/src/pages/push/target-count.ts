import type { PushDetail } from '../../../../client/operations.ts';
import { useAudience } from '../../api/compose.ts';
import { bodyOfRequest, toJson } from '../../draft/copy.ts';
import { isRecord, type JsonRecord } from '../../draft/json-text.ts';
import { formatCount } from '../../text/format.ts';

/** Members of a target that the count of an audience takes. */
const members = ['where', 'channels', 'prod', 'topic'] as const;

/**
 * Returns how many devices match the target of a push now, as text: `≥` stands before a count that
 * ended early. Undefined until the count is known, where the person may not count, and for a
 * redrive, whose recipients are those of another push.
 */
export function useTargetCount(appId: string, push: PushDetail, isNeeded: boolean): string | undefined {
  const request = toJson(push.request);
  const text = isNeeded && isRecord(request) ? targetText(request) : undefined;
  const { data } = useAudience(appId, text);
  if (!isNeeded || !isRecord(request)) return undefined;
  const { target } = request;
  if (isRecord(target) && typeof target.listed === 'number' && push.redriveOf === null)
    return formatCount(target.listed);
  if (text === undefined || !data) return undefined;
  return `${data.isLeast ? '≥ ' : ''}${formatCount(data.devices)}`;
}

function targetText(request: JsonRecord): string | undefined {
  const { target, redrive } = request;
  if (redrive !== undefined || !isRecord(target) || target.kind !== 'query') return undefined;
  const { body } = bodyOfRequest(request);
  const asked = members.flatMap((name) => (body[name] === undefined ? [] : [[name, body[name]] as const]));
  return JSON.stringify(Object.fromEntries(asked));
}
