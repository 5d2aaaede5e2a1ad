import { listProcesses, type SeenProcess } from '../../../../shared/db/tables/processes.ts';
import type { ReplyValues } from '../../../../shared/domain/reasons.ts';
import { replyText } from '../../../../shared/domain/texts/texts.ts';
import type { ApiDeps } from '../../deps.ts';
import {
  checkApprovals,
  checkFreezes,
  checkGateways,
  checkInvalidTokens,
  checkPlatforms,
  checkWebhooks,
  type Finding,
  interrupted,
  runEach,
} from './checks.ts';
import { checkCredentials, checkRotations, checkSecretKeys } from './credential-checks.ts';
import { checkProduction } from './production.ts';
import { checkProcesses, checkRestoration, checkUpkeep } from './service-checks.ts';
import { checkWebPushKeys } from './web-push-keys.ts';

/**
 * Maximum number of apps whose credentials are checked, because all their profiles are decrypted.
 */
const maxApps = 1000;

/** Finding in the form of the admin API (protocol/admin-api.md#doctor). */
export interface FindingReply {
  level: Finding['status'];
  subject: string;
  code: string;
  params: ReplyValues;
}

/**
 * Runs the checks of `carillon doctor` that need only the database. Also lists the running
 * processes.
 */
export class DoctorService {
  readonly #deps: ApiDeps;
  #running: Promise<FindingReply[]> | undefined;
  #runningProduction: Promise<FindingReply[]> | undefined;

  constructor(deps: ApiDeps) {
    this.#deps = deps;
  }

  /** Lists the running processes. */
  processes(): Promise<SeenProcess[]> {
    return listProcesses(this.#deps.admissionDb);
  }

  /** Runs the checks once for all concurrent callers. */
  check(): Promise<FindingReply[]> {
    this.#running ??= this.#run().finally(() => {
      this.#running = undefined;
    });
    return this.#running;
  }

  /** Runs the checks for production once for all concurrent callers. */
  checkProduction(): Promise<FindingReply[]> {
    const { admissionDb: db, clock } = this.#deps;
    this.#runningProduction ??= checkProduction({ db, nowMs: clock.now() })
      .catch(interrupted)
      .then((findings) => findings.map(toReply))
      .finally(() => {
        this.#runningProduction = undefined;
      });
    return this.#runningProduction;
  }

  async #run(): Promise<FindingReply[]> {
    const { admissionDb: db, clock, vault } = this.#deps;
    const context = { db, vault, nowMs: clock.now(), maxApps };
    // Checks run one after another. An operator can wait for them, but other calls need the
    // connections.
    const findings = await runEach([
      () => checkProcesses(db),
      () => checkUpkeep(db),
      () => checkRestoration(db),
      () => checkFreezes(db),
      () => checkApprovals(db),
      () => checkCredentials(context),
      () => checkSecretKeys(context),
      () => checkRotations(context),
      () => checkGateways(db),
      () => checkInvalidTokens(db),
      () => checkWebhooks(db),
      () => checkPlatforms(context),
      () => checkWebPushKeys(context),
    ]);
    return findings.map(toReply);
  }
}

const toReply = ({ name, status, code, params }: Finding): FindingReply => ({
  level: status,
  subject: name,
  ...replyText({ code, params }),
});
