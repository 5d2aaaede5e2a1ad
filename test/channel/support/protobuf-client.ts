import protobuf from 'protobufjs';
import { WebSocket } from 'ws';
import { SocketClient } from './socket-client.ts';

/** The commands of protocol/channel.md#protobuf-form as a client's schema, written down apart from the server's. */
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

/** The bytes of a command as clients send it. */
export function encode(command: { [member: string]: unknown }): Buffer {
  const bytes = genericCommand.encode(genericCommand.fromObject(command)).finish();
  return Buffer.from(bytes);
}

/** A command as clients read it: enums by name, absent members absent. */
interface Heard {
  cmd?: string;
  i?: number;
  peerId?: string;
  service?: number;
  dataMessage?: { ids: string[]; msg: { data: string }[]; offline?: boolean };
  errorMessage?: { code: number; reason: string; detail?: string };
  loggedinMessage?: { pushDisabled?: boolean };
}

function decode(bytes: Buffer): Heard {
  return genericCommand.toObject(genericCommand.decode(bytes), { enums: String });
}

export const subProtocols = ['lc.protobuf2.3', 'lc.protobuf2.1', 'lc.proto2base64.3'];

/** A client of the protobuf languages that says what a test tells it to, and keeps what it hears. */
export class ProtobufClient extends SocketClient {
  /** What it heard, byte by byte. */
  readonly bytes: Buffer[] = [];
  readonly heard: Heard[] = [];
  readonly #isText: boolean;

  private constructor(socket: WebSocket, isText: boolean) {
    super(socket);
    this.#isText = isText;
  }

  protected keep(data: Buffer, isBinary: boolean): void {
    if (isBinary === this.#isText) throw new Error('a frame of the wrong kind');
    const command = this.#isText ? Buffer.from(String(data), 'base64') : data;
    this.bytes.push(command);
    this.heard.push(decode(command));
  }

  protected account(): string {
    return JSON.stringify(this.heard);
  }

  static async open(url: string, subProtocol: string | string[] = 'lc.protobuf2.3'): Promise<ProtobufClient> {
    const socket = new WebSocket(url, subProtocol, { perMessageDeflate: false });
    const client = new ProtobufClient(socket, subProtocol === 'lc.proto2base64.3');
    await client.opened();
    return client;
  }

  /** Opens, logs in, and waits for the answer. */
  static async login(
    url: string,
    device: { appId: string; installationId: string },
    subProtocol?: string,
  ): Promise<ProtobufClient> {
    const client = await ProtobufClient.open(url, subProtocol);
    client.say({ cmd: 'login', ...device });
    await client.hears('loggedin');
    return client;
  }

  say(command: { [member: string]: unknown }): void {
    this.sayBytes(encode(command));
  }

  sayBytes(command: Buffer): void {
    this.socket.send(this.#isText ? command.toString('base64') : command);
  }

  /** Waits for so many commands of this name. Rejects when the connection ends before. */
  async hears(cmd: string, times = 1): Promise<void> {
    await this.until(() => this.heard.filter((command) => command.cmd === cmd).length >= times);
  }

  /** The data commands so far. */
  get data(): NonNullable<Heard['dataMessage']>[] {
    return this.heard.flatMap(({ dataMessage }) => dataMessage ?? []);
  }

  get letterIds(): string[] {
    return this.data.flatMap(({ ids }) => ids);
  }
}
