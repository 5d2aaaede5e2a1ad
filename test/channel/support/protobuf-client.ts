import protobuf from 'protobufjs';
import { WebSocket } from 'ws';
import { SocketClient } from './socket-client.ts';

/**
 * Schema of protocol/channel.md#protobuf-form in the form that clients have. It is independent of
 * the server's schema.
 */
const schema = `
  syntax = "proto2";
  package push_server.messages2;
  enum CommandType {
    session = 0; conv = 1; direct = 2; ack = 3; rcp = 4; unread = 5; logs = 6; error = 7; login = 8; data = 9;
    room = 10; read = 11; presence = 12; report = 13; echo = 14; loggedin = 15; logout = 16; loggedout = 17;
    patch = 18; pubsub = 19; blacklist = 20; goaway = 21;
  }
  message JsonObjectMessage { required string data = 1; }
  message DataCommand { repeated string ids = 1; repeated JsonObjectMessage msg = 2; optional bool offline = 3; }
  message ErrorCommand {
    required int32 code = 1; required string reason = 2; optional int32 appCode = 3; optional string detail = 4;
    repeated string pids = 5; optional string appMsg = 6;
  }
  message AckCommand {
    optional int32 code = 1; optional string reason = 2; optional string mid = 3; optional string cid = 4;
    optional int64 t = 5; optional string uid = 6; optional int64 fromts = 7; optional int64 tots = 8;
    optional string type = 9; repeated string ids = 10; optional int32 appCode = 11; optional string appMsg = 12;
  }
  message LoggedinCommand { optional bool pushDisabled = 1; }
  message GenericCommand {
    optional CommandType cmd = 1; optional int32 op = 2; optional string appId = 3; optional string peerId = 4;
    optional int32 i = 5; optional string installationId = 6; optional int32 priority = 7;
    optional int32 service = 8; optional int64 serverTs = 9; optional int64 clientTs = 10;
    optional int32 notificationType = 11;
    optional DataCommand dataMessage = 101; optional ErrorCommand errorMessage = 103;
    optional AckCommand ackMessage = 105; optional LoggedinCommand loggedinMessage = 117;
  }`;

const genericCommand = protobuf.parse(schema).root.lookupType('GenericCommand');

/** Encodes a command like a client. */
export function encode(command: { [member: string]: unknown }): Buffer {
  const bytes = genericCommand.encode(genericCommand.fromObject(command)).finish();
  return Buffer.from(bytes);
}

/** Command as clients read it: enums are names, and missing members are undefined. */
interface ReceivedCommand {
  cmd?: string;
  i?: number;
  peerId?: string;
  service?: number;
  dataMessage?: { ids: string[]; msg: { data: string }[]; offline?: boolean };
  errorMessage?: { code: number; reason: string; detail?: string };
  loggedinMessage?: { pushDisabled?: boolean };
}

function decode(bytes: Buffer): ReceivedCommand {
  return genericCommand.toObject(genericCommand.decode(bytes), { enums: String });
}

export const subProtocols = ['lc.protobuf2.3', 'lc.protobuf2.1', 'lc.proto2base64.3'];

/** Client of the protobuf protocols. It records what it receives. */
export class ProtobufClient extends SocketClient {
  /** Received commands as bytes. */
  readonly bytes: Buffer[] = [];
  readonly received: ReceivedCommand[] = [];
  readonly #isText: boolean;

  private constructor(socket: WebSocket, isText: boolean) {
    super(socket);
    this.#isText = isText;
  }

  protected onFrame(data: Buffer, isBinary: boolean): void {
    if (isBinary === this.#isText) throw new Error('a frame of the wrong kind');
    const command = this.#isText ? Buffer.from(String(data), 'base64') : data;
    this.bytes.push(command);
    this.received.push(decode(command));
  }

  protected describeReceived(): string {
    return JSON.stringify(this.received);
  }

  static async open(
    url: string,
    subProtocol: string | string[] = 'lc.protobuf2.3',
  ): Promise<ProtobufClient> {
    const socket = new WebSocket(url, subProtocol, { perMessageDeflate: false });
    const client = new ProtobufClient(socket, subProtocol === 'lc.proto2base64.3');
    await client.opened();
    return client;
  }

  /** Opens a connection, logs in and waits for the reply. */
  static async login(
    url: string,
    device: { appId: string; installationId: string },
    subProtocol?: string,
  ): Promise<ProtobufClient> {
    const client = await ProtobufClient.open(url, subProtocol);
    client.send({ cmd: 'login', ...device });
    await client.untilCommand('loggedin');
    return client;
  }

  send(command: { [member: string]: unknown }): void {
    this.sendBytes(encode(command));
  }

  sendBytes(command: Buffer): void {
    this.socket.send(this.#isText ? command.toString('base64') : command);
  }

  /** Resolves after `times` commands. Rejects if the connection closes first. */
  async untilCommand(cmd: string, times = 1): Promise<void> {
    await this.until(() => this.received.filter((command) => command.cmd === cmd).length >= times);
  }

  /** Data commands received so far. */
  get data(): NonNullable<ReceivedCommand['dataMessage']>[] {
    return this.received.flatMap(({ dataMessage }) => dataMessage ?? []);
  }

  get messageIds(): string[] {
    return this.data.flatMap(({ ids }) => ids);
  }
}
