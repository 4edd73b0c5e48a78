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
  /** Resolves once the batches so far have been sent; rejects with the first failure. */
  #sent: Promise<void> = Promise.resolve();
  #hasFailed = false;
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
    while (!this.#hasFailed && this.isFull) {
      this.#room ??= Promise.withResolvers();
      await this.#room.promise;
    }
    if (this.#hasFailed) await this.#sent;
  }

  /** @param alone whether the event must have a batch of its own. */
  add(event: Event, alone = false): void {
    const { eventsMax, bytesMax, delayMs } = this.#limits;
    if (alone || this.#batchBytes + event.sizeBytes > bytesMax) this.#cut();
    this.#batch.push(event);
    this.#batchBytes += event.sizeBytes;
    this.#bufferedBytes += event.sizeBytes;
    const isWhole = this.#batch.length >= eventsMax || this.#batchBytes >= bytesMax;
    if (alone || isWhole || this.#hasFailed) this.#cut();
    else if (delayMs < Infinity) this.#timer ??= setTimeout(() => this.#end(), delayMs);
  }

  /** Sends all events so far. Rejects if the queue has failed. */
  async flush(): Promise<void> {
    this.#cut();
    await this.#sent;
  }

  /** Sends the batches that are complete, but not the current one. */
  async drop(): Promise<void> {
    this.#batch = [];
    await this.flush();
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
    this.#sent = this.#sent.then(() => this.#send(events));
    void this.#sent.catch((error) => {
      this.#hasFailed = true;
      for (const event of events) event.reject?.(error);
    }).then(() => {
      this.#unsent--;
      this.#bufferedBytes -= sizeBytes;
      this.#room?.resolve();
      this.#room = null;
      if (this.#hasFailed || this.#isDue && this.#unsent === 0) this.#cut();
    });
  }
}
