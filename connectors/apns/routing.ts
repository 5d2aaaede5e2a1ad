import { reason } from '../../shared/domain/reasons.ts';
import type {
  MassLimit,
  NamedCredentials,
  ProfileChoice,
  ProfileCriteria,
  PushMessage,
} from '../contract/connector.ts';
import { type ApnsCredentials, certificateTopicsOf, topicsOf } from './credentials.ts';
import { pushTypeIn } from './payload.ts';
import { pushTypeOf, sendableTopic } from './push-types.ts';

type Candidate = NamedCredentials<ApnsCredentials>;

function serves(candidate: Candidate, prod: 'dev' | 'prod'): boolean {
  return (
    candidate.credentials.environment === undefined || candidate.credentials.environment === prod
  );
}

/**
 * Chooses the profile for an Apple device (protocol/push.md#credentials-for-ios).
 *
 * - Profiles with token authentication come before certificates, unless the push type needs a
 *   certificate.
 * - The team id of the device selects the team, or else the team id of the push. If neither is set,
 *   only one team may own the topic.
 * - Among certificates, `deviceProfile` of the device comes before the environment.
 */
export function chooseApnsProfile(
  profiles: Candidate[],
  criteria: ProfileCriteria,
  message: Pick<PushMessage, 'prod' | 'topic' | 'teamId' | 'data'>,
): ProfileChoice {
  if (profiles.length === 0) return { ok: false, error: reason('noApnsProfile') };
  const pushType = pushTypeIn(message);
  const needed = pushType === null ? undefined : pushTypeOf(pushType).auth;
  const tokens = profiles.filter(({ credentials }) => credentials.auth === 'token');
  const certificates = profiles.filter(({ credentials }) => credentials.auth === 'certificate');
  if (needed === 'certificate' && certificates.length === 0)
    return { ok: false, error: reason('needsCertificate', { type: String(pushType) }) };
  if (needed !== 'certificate' && tokens.length > 0) return chooseToken(tokens, criteria, message);
  const choice = chooseCertificate(certificates, criteria, message.prod);
  const profile = choice.ok ? profiles.find(({ name }) => name === choice.profile) : undefined;
  const topic = criteria.topic ?? message.topic ?? (profile && topicsOf(profile.credentials)[0]);
  const error =
    profile && pushType && topic ? certificateProblem(profile.credentials, pushType, topic) : null;
  return error === null ? choice : { ok: false, error };
}

/**
 * Returns the reason why a certificate cannot send a push type. Returns null if it can, or if only
 * APNs knows (protocol/apns.md#certificates). `topic` may have the suffix of the push type.
 */
export function certificateProblem(
  credentials: ApnsCredentials,
  pushType: string,
  topic: string,
): string | null {
  if (credentials.auth !== 'certificate') return null;
  if (pushTypeOf(pushType).auth === 'token')
    return reason('needsTokenAuthentication', { type: pushType });
  const listed = certificateTopicsOf(credentials);
  const sent = sendableTopic(topic, pushType, topicsOf(credentials));
  return listed === null || sent === undefined || listed.includes(sent)
    ? null
    : reason('certificateTopic', { topic: sent });
}

function chooseToken(
  tokens: Candidate[],
  criteria: ProfileCriteria,
  message: Pick<PushMessage, 'prod' | 'topic' | 'teamId'>,
): ProfileChoice {
  const fitting = tokens.filter((candidate) => serves(candidate, message.prod));
  const teamId = criteria.teamId ?? message.teamId ?? null;
  const ofTeam =
    teamId === null
      ? fitting
      : fitting.filter((c) => c.credentials.auth === 'token' && c.credentials.teamId === teamId);
  const topic = criteria.topic ?? message.topic ?? null;
  const owning =
    topic === null
      ? ofTeam
      : ofTeam.filter(({ credentials }) => sendableTopic(topic, 'alert', topicsOf(credentials)));
  const named = owning.find(({ name }) => name === (criteria.deviceProfile || '_default'));
  const teams = new Set(
    owning.map(({ credentials }) => (credentials.auth === 'token' ? credentials.teamId : '')),
  );
  if (teams.size > 1) return { ok: false, error: reason('severalTeams') };
  const choice = named ?? owning[0];
  if (choice) return { ok: true, profile: choice.name };
  if (fitting.length === 0)
    return {
      ok: false,
      error: reason('noApnsProfileOfEnvironment', { environment: message.prod }),
    };
  if (ofTeam.length === 0) return { ok: false, error: reason('noApnsProfileOfTeam') };
  return { ok: false, error: reason('noApnsProfileOfTopic') };
}

function chooseCertificate(
  profiles: Candidate[],
  criteria: ProfileCriteria,
  prod: 'dev' | 'prod',
): ProfileChoice {
  if (criteria.deviceProfile !== '') {
    const own = profiles.find(({ name }) => name === criteria.deviceProfile);
    if (own) return { ok: true, profile: own.name };
    return {
      ok: false,
      error: reason('noApnsCertificateNamed', { profile: criteria.deviceProfile }),
    };
  }
  const fitting = profiles.filter((candidate) => serves(candidate, prod));
  const choice = ['_default', prod].flatMap((name) =>
    fitting.filter((candidate) => candidate.name === name),
  )[0];
  const only = fitting.length === 1 ? fitting[0] : undefined;
  const certificate = choice ?? only;
  if (certificate) return { ok: true, profile: certificate.name };
  return { ok: false, error: reason('noApnsCertificateOfEnvironment', { environment: prod }) };
}

/**
 * Returns the limit of development certificates: 20,000 devices per push
 * (protocol/push.md#development-certificates).
 */
export function developmentLimit(
  credentials: ApnsCredentials,
  message: Pick<PushMessage, 'prod'>,
): MassLimit | null {
  const isDevelopment =
    credentials.auth === 'certificate' && (credentials.environment ?? message.prod) === 'dev';
  return isDevelopment ? { devices: 20_000, error: reason('massPushWithDevelopment') } : null;
}
