/**
 * The core of the store: all methods as synchronous functions over one connection. Each runs inside a transaction of its caller.
 */
import type { Database } from 'better-sqlite3'
import type { NewEvent } from '../../../events/kept-event.ts'
import type { DestinationName, LeaseTerms, MessageId } from '../../../mail/message.ts'
import { joinProvider } from '../../records/provider-state.ts'
import { dispatch, methodsOf, type Answers, type Call, type Handlers, type Method } from '../../methods.ts'
import { DepartedRows } from '../writing/departed-rows.ts'
import { ErasureRows } from '../erasure/erasure-rows.ts'
import { FileErasure } from '../file/file-erasure.ts'
import { Contents, Intake } from '../writing/enqueue.ts'
import { HistoryWriter } from '../writing/history.ts'
import { Housekeeping } from '../writing/housekeeping.ts'
import { Leases } from '../writing/leases.ts'
import { MessageShares } from '../records/message-shares.ts'
import { EventRows } from '../outbox/event-rows.ts'
import { SubscriptionRows } from '../outbox/subscription-rows.ts'
import { Moves } from '../moving/moves.ts'
import { NoticesDue } from '../writing/notices-due.ts'
import { Operating } from '../writing/operate.ts'
import { Corrupt } from '../writing/quarantine.ts'
import { RecordCalls } from '../records/record-calls.ts'
import { SearchIndex } from '../search/search-index.ts'
import { Requeueing } from '../writing/requeueing.ts'
import { Outcomes } from '../writing/outcomes.ts'
import { ShareRows } from '../records/share-rows.ts'
import { TrafficRows } from '../writing/traffic-rows.ts'

export interface StoreCore {
  run<M extends Method>(call: Call<M>): Answers[M]
  readonly corrupt: Corrupt
  readonly housekeeping: Housekeeping
  readonly shares: MessageShares
  readonly traffic: TrafficRows
  readonly usage: ShareRows
  readonly events: EventRows
  readonly fileErasure: FileErasure
}

/** Creates the methods, once per connection. `freeSpace` returns the bytes for new mail. */
export function createStoreCore(db: Database, terms: LeaseTerms, freeSpace: () => number): StoreCore {
  const { handlers, ...parts } = openParts(db, terms, freeSpace)
  const { shares, traffic, usage, events } = parts
  const changed = (message: MessageId) => shares.changed(message)
  const run = <M extends Method>(call: Call<M>): Answers[M] => {
    const [mark, usageMark] = [traffic.mark, usage.mark]
    try {
      return dispatch(handlers, call, changed)
    } catch (error) {
      traffic.rewind(mark)
      usage.rewind(usageMark)
      events.rolledBack()
      throw error
    }
  }
  return { run, ...parts }
}

function openParts(db: Database, terms: LeaseTerms, freeSpace: () => number): Omit<StoreCore, 'run'> & { readonly handlers: Handlers } {
  const shares = new MessageShares(db)
  const changed = (message: MessageId) => shares.changed(message)
  const traffic = new TrafficRows(db)
  const usage = new ShareRows(db)
  const events = new EventRows(db)
  const corrupt = new Corrupt(db, { changed, events })
  const departures = new HistoryWriter(db, events)
  const [records, subscriptions] = [new RecordCalls(db, terms.owner), new SubscriptionRows(db, events)]
  const intake = new Intake(db, { traffic, records, events })
  const operating = new Operating(db, { departures, requeueing: new Requeueing(db, departures), traffic, records, events })
  const housekeeping = new Housekeeping(db, { operating, traffic, records, events, changed })
  const fileErasure = new FileErasure(db)
  const search = new SearchIndex(db)
  const departed = new DepartedRows(db, { intake, records })
  const handlers = {
    ...methodsOf(
      corrupt,
      intake,
      operating,
      housekeeping,
      events,
      subscriptions,
      records,
      usage,
      new Contents(db),
      search,
      departed,
      new ErasureRows(db, { records, search, departed, file: fileErasure }),
      new Leases(db, { corrupt, events, terms }),
      new Outcomes(db, { departures, traffic, events, records, owner: terms.owner }),
      new NoticesDue(db, { corrupt, departures, intake, events }),
      new Moves(db, { intake, traffic, records, subscriptions }),
    ),
    recordEvents: (happened: readonly NewEvent[]) => events.keep(happened),
    joinProvider: (destination: DestinationName, provider: string | null) => records.run(joinProvider, destination, provider),
    // Events are numbered when they are written.
    numberEvents: () => false,
    tally: (largest: number) => {
      const counted = shares.tally(largest)
      return counted === null ? null : { ...counted, traffic: traffic.total() }
    },
    // The queue has one owner at a time.
    claimMoves: () => undefined,
    freeSpace,
  }
  return { corrupt, housekeeping, shares, traffic, usage, events, fileErasure, handlers }
}
