/**
 * Collects encoded events in batches, which are sent one after another, so that the log has the
 * events in order. Where a batch ends depends on its events alone, unless it ends by time.
 */
export interface QueuedEvent {
  /** The event as JSON. */
  text: string;
  /** Size of `text` in UTF-8. */
  sizeBytes: number;
  /** Called if the event was not committed, or if that is unknown. */
  reject?(error: unknown): void;
}

export interface QueueLimits {
  eventsMax: number;
  /** Maximum size of a batch of several events. */
  bytesMax: number;
  /** A batch ends this long after its first event; Infinity if it ends by size alone. */
  delayMs: number;
  /** Size of the events in the queue from which it is full. */
  bufferBytesMax: number;
}

export class BatchQueue<Event extends QueuedEvent> {
  readonly #send: (events: Event[]) => Promise<void>;
  readonly #limits: QueueLimits;
  #batch: Event[] = [];
  #batchBytes = 0;
  #bufferedBytes = 0;
  #timer: ReturnType<typeof setTimeout> | undefined;
  #isDue = false;
  #unsent = 0;
  /** Resolves once the batches so far have been sent; never rejects. */
  #sent: Promise<void> = Promise.resolve();
  #failure: { error: unknown } | null = null;
  #room: PromiseWithResolvers<void> | null = null;

  /** @param send sends a batch; if it rejects, the queue fails, and sends nothing more. */
  constructor(send: (events: Event[]) => Promise<void>, limits: QueueLimits) {
    this.#send = send;
    this.#limits = limits;
  }

  get isFull(): boolean {
    return this.#bufferedBytes >= this.#limits.bufferBytesMax;
  }

  /** Resolves once the queue is not full. Rejects if it has failed. */
  async ready(): Promise<void> {
    while (this.#failure === null && this.isFull) {
      this.#room ??= Promise.withResolvers();
      await this.#room.promise;
    }
    this.#throwFailure();
  }

  /** @param alone whether the event must have a batch of its own. */
  add(event: Event, alone = false): void {
    this.#throwFailure();
    const { eventsMax, bytesMax, delayMs } = this.#limits;
    if (alone || this.#batchBytes + event.sizeBytes > bytesMax) this.#cut();
    this.#batch.push(event);
    this.#batchBytes += event.sizeBytes;
    this.#bufferedBytes += event.sizeBytes;
    if (alone || this.#batch.length >= eventsMax || this.#batchBytes >= bytesMax) this.#cut();
    else if (delayMs < Infinity) this.#timer ??= setTimeout(() => this.#end(), delayMs);
  }

  /** Sends all events so far. Rejects if the queue has failed. */
  async flush(): Promise<void> {
    this.#cut();
    await this.#sent;
    this.#throwFailure();
  }

  /** Sends the batches that are complete, but not the current one. */
  async drop(): Promise<void> {
    this.#batch = [];
    await this.flush();
  }

  #throwFailure(): void {
    if (this.#failure !== null) throw this.#failure.error;
  }

  /** Ends the batch by time, but lets it grow while others are being sent. */
  #end(): void {
    this.#isDue = true;
    if (this.#unsent === 0) this.#cut();
  }

  #cut(): void {
    clearTimeout(this.#timer);
    this.#timer = undefined;
    this.#isDue = false;
    const [events, sizeBytes] = [this.#batch, this.#batchBytes];
    if (events.length === 0) return;
    this.#batch = [];
    this.#batchBytes = 0;
    this.#unsent++;
    this.#sent = this.#sent.then(async () => {
      await this.#settle(events);
      this.#unsent--;
      this.#bufferedBytes -= sizeBytes;
      this.#room?.resolve();
      this.#room = null;
      if (this.#failure !== null || this.#isDue && this.#unsent === 0) this.#cut();
    });
  }

  async #settle(events: Event[]): Promise<void> {
    try {
      this.#throwFailure();
      await this.#send(events);
    } catch (error) {
      this.#failure ??= { error };
      for (const event of events) event.reject?.(error);
    }
  }
}
