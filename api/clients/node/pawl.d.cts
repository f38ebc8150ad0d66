// pawl.d.cts - the types of pawl.cjs, which says what each does.

export interface Config {
  leaseUrl?: string; gatewayUrl?: string; timeoutMs?: number; attempts?: number;
  accessToken?: string; accessTokenFile?: string; ca?: string; cert?: string; key?: string; allowPlaintext?: boolean;
}

export interface AcquireOptions<Of = Hold> {
  ttlMs?: number;
  waitMs?: number;
  holder?: string;
  mode?: "exclusive" | "shared";
  permits?: number;
  lockDelayMs?: number;
  meta?: Record<string, unknown>;
  leaseId?: string;
  onLost?: (of: Of, error: PawlLost) => void;
  renew?: boolean;
  signal?: AbortSignal;
  session?: Session;
}

export interface SessionOptions {
  ttlMs?: number;
  holder?: string;
  meta?: Record<string, unknown>;
  onLost?: (of: Session, error: PawlLost) => void;
}

export interface WriteOptions { contentType?: string; ifMatch?: string; ifNoneMatch?: string; idempotencyKey?: string }

export interface Resource { body: Buffer; etag: string | null; contentType: string | null }

export interface Item { id: string; type: string; lease: string; token: number; holder: string; at_ms: number; reason: string }
export interface Missed { type: "missed" }

export interface Look {
  lease: string;
  state: "free" | "held" | "delayed";
  token: number;
  epoch: number;
  mode: string | null;
  holders: { holder: string; token: number; mode: string; holds: number; expires_in_ms: number; held_for_ms: number; meta: Record<string, unknown> }[];
  waiting: number;
}

export class PawlError extends Error {
  readonly code: string;
  readonly detail: string;
  readonly status: number;
  readonly problem: Record<string, unknown>;
  readonly retryable: boolean;
  readonly holder: string | null;
  readonly ended: string | null;
}
export class PawlHeld extends PawlError {}
export class PawlLost extends PawlError {}
export class PawlNotDone extends PawlError {}
export class PawlUnknown extends PawlError {}

export class Pawl {
  constructor(config?: Config);
  readonly timeoutMs: number;
  readonly attempts: number;
  acquire(name: string, options?: AcquireOptions): Promise<Hold>;
  acquireAll(names: readonly string[], options?: AcquireOptions): Promise<Hold[]>;
  with<T>(name: string, options: AcquireOptions, body: (hold: Hold) => T | Promise<T>): Promise<T>;
  look(name: string): Promise<Look>;
  session(options?: SessionOptions): Promise<Session>;
  events(name?: string, options?: { since?: string; signal?: AbortSignal }): AsyncGenerator<Item | Missed, void, void>;
  put(key: string, body: string | Uint8Array, fencingToken: string, options?: WriteOptions): Promise<string | null>;
  get(key: string, fencingToken?: string): Promise<Resource>;
  delete(key: string, fencingToken: string, options?: Pick<WriteOptions, "ifMatch" | "idempotencyKey">): Promise<void>;
}

declare class Kept {
  protected constructor();
  readonly name: string;
  readonly signal: AbortSignal;
  readonly lost: PawlLost | null;
  readonly released: boolean;
  remainingMs(): number;
  check(): void;
  renew(ttlMs?: number): Promise<void>;
  enter(): this;
  release(): Promise<void>;
}

export class Hold extends Kept {
  private constructor();
  readonly token: number;
  readonly fencingToken: string;
  readonly epoch: number;
  readonly mode: string;
  readonly holder: string;
  readonly releaseProblem: PawlError | null;
  put(key: string, body: string | Uint8Array, options?: WriteOptions): Promise<string | null>;
  get(key: string): Promise<Resource>;
  delete(key: string, options?: Pick<WriteOptions, "ifMatch" | "idempotencyKey">): Promise<void>;
}

export class Session extends Kept {
  private constructor();
  readonly id: string;
  acquire(name: string, options?: AcquireOptions): Promise<Hold>;
  acquireAll(names: readonly string[], options?: AcquireOptions): Promise<Hold[]>;
}
