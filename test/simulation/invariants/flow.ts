/** Limits of concurrent deliveries, closed destinations, and the bounds of the active queue. */
import { SECOND } from '../../../src/system/clock.ts'
import type { DestinationName, RecipientId } from '../../../src/mail/message.ts'
import { shardOf } from '../../../src/store/membership/shards.ts'
import type { Complain, Invariant, Scene } from '../replay.ts'

/** The number of concurrent deliveries is within the process limit, the window and the rate delay. */
export function limitsHold(complain: Complain): Invariant {
  const suspects = new Set<RecipientId>()
  return {
    see({ where, event }, { underWay, lingering, settings }) {
      if (where !== 'test') return
      if (event.did === 'committed' && event.method === 'claimSuspect') {
        for (const { id } of event.requests.flatMap(({ recipients }) => recipients)) suspects.add(id)
      }
      if (event.did !== 'began' || event.recipients.some(({ id }) => suspects.has(id))) return
      const counted = [...underWay.values()].filter(({ attempt }) => !lingering.has(attempt))
      const all = counted.filter(({ recipients }) => !recipients.some(({ id }) => suspects.has(id)))
      const own = all.filter(({ node }) => node === event.node).length + 1
      const here = all.filter(({ destination }) => destination === event.destination).length + 1
      const most = settings.number('', 'default_process_limit', 100)
      if (own > most) complain(`${own} deliveries at once, of ${most} allowed`)
      const pause = settings.duration(event.destination, 'default_destination_rate_delay', '0')
      const limit = pause > 0 ? 1 : settings.number(event.destination, 'default_destination_concurrency_limit', 20)
      if (limit > 0 && here > limit) complain(`${here} deliveries at once to ${event.destination}, of ${limit} allowed`)
      const together = settings.number(event.destination, 'default_destination_recipient_limit', 50)
      if (together > 0 && event.recipients.length > together)
        complain(`${event.recipients.length} recipients at once, of ${together} allowed`)
    },
  }
}

/** The deliveries to all destinations of a provider that run at once are within its limit, from the first delivery on. */
export function providersHold(complain: Complain): Invariant {
  const admitted = new Set<number>()
  return {
    see({ where, event }, { underWay, lingering, provider }) {
      if (where !== 'test' || event.did !== 'admitted' || provider === undefined) return
      admitted.add(event.attempt)
      const here = [...underWay.keys()].filter((attempt) => admitted.has(attempt) && !lingering.has(attempt)).length
      if (here > provider.limit) complain(`${here} deliveries at once to provider ${event.provider}, of ${provider.limit} allowed`)
    },
  }
}

/** Rate delays between deliveries are kept; deliveries of suspect mail are exempt. */
export function pausesAreKept(complain: Complain): Invariant {
  const lastEnded = new Map<DestinationName, number>()
  const suspects = new Set<RecipientId>()
  return {
    see({ where, event }, { settings, underWay, at, upSince }) {
      if (where !== 'test') return
      if (event.did === 'committed' && event.method === 'claimSuspect') {
        for (const { id } of event.requests.flatMap(({ recipients }) => recipients)) suspects.add(id)
      }
      const recipients =
        event.did === 'began' ? event.recipients : event.did === 'ended' ? (underWay.get(event.attempt)?.recipients ?? []) : []
      if (recipients.some(({ id }) => suspects.has(id))) return
      // The next owner of a destination does not know its last delivery.
      if (event.did === 'shards taken')
        for (const name of lastEnded.keys()) if (event.shards.includes(shardOf(name))) lastEnded.delete(name)
      if (event.did === 'ended') lastEnded.set(event.destination, at)
      if (event.did !== 'began') return
      const pause = settings.duration(event.destination, 'default_destination_rate_delay', '0')
      const since = lastEnded.get(event.destination)
      if (since === undefined || upSince === null || since < upSince + 10 * SECOND || pause === 0) return
      if (at - since < pause) complain(`a delivery to ${event.destination} began ${at - since} ms after the last, and should wait ${pause}`)
    },
  }
}

/** No delivery goes to a suspended destination, and only one probe at its time to a dead one. */
export function closedIsLeftAlone(complain: Complain): Invariant {
  const deadUntil = new Map<DestinationName, number>()
  return {
    see(entry, scene) {
      if (entry.where === 'queue' && entry.event.kind === 'died') {
        const { destination } = entry.event
        const until = entry.event.until - scene.wallSetBy
        deadUntil.set(destination, until)
        const least = scene.settings.duration(destination, 'minimal_backoff_time', '300s')
        if (until - scene.now < least)
          complain(`${destination} will be probed after ${until - scene.now} ms, and should be left alone for ${least}`)
      }
      if (entry.where !== 'test') return
      const deed: { readonly did: string } = entry.event
      // State that was only in memory at a crash or on a full disk is lost at the restart.
      if (deed.did === 'started again' || deed.did === 'restarted' || deed.did === 'shards taken') {
        for (const { name, deadUntil: until } of scene.queue.remembered.values()) deadUntil.set(name, until ?? 0)
      }
      if (entry.event.did === 'began') check(entry.event.destination, entry.event.recipients.length, scene)
    },
  }
  function check(destination: DestinationName, recipients: number, { closed, underWay, lingering, now }: Scene): void {
    const how = closed.get(destination)
    if (how === 'suspended') complain(`${destination} was tried while it is suspended`)
    if (how !== 'dead') return
    const until = deadUntil.get(destination) ?? 0
    if (now < until) complain(`${destination} is dead, and was tried ${until - now} ms before its time`)
    // The probe of a node that gave the shard away goes on beside that of the next owner.
    if ([...underWay.values()].some((other) => other.destination === destination && !lingering.has(other.attempt)))
      complain(`${destination} is dead, and is probed twice at once`)
    if (recipients > 1) complain(`${destination} is dead, and was probed with ${recipients} recipients`)
  }
}

/**
 * The number of leases is at most the size of the active queue. A claim of expired mail adds at most a page for a short time, and the retry
 * of a message that was in delivery during two crashes adds one delivery, which starts beside a full queue too.
 */
export const leasesAreBounded = (complain: Complain): Invariant => {
  const apart = new Set<RecipientId>()
  return {
    see({ where, event }, { queue, settings }) {
      if (where !== 'test' || event.did !== 'committed') return
      for (const id of apart) if (queue.recipient(id)?.state !== 'leased') apart.delete(id)
      if (event.method === 'claimExpired' || event.method === 'claimSuspect')
        for (const { id } of event.requests.flatMap(({ recipients }) => recipients)) apart.add(id)
      const messages = settings.number('', 'qmgr_message_active_limit', 20_000)
      const limit = Math.max(messages, settings.number('', 'qmgr_message_recipient_limit', 20_000))
      const leased = queue.leased - apart.size
      if (leased > limit) complain(`${leased} recipients are leased, and the active queue holds ${limit}`)
    },
  }
}
