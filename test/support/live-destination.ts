/** Destinations in memory for tests of what is shown: the state of a new destination, but for the members that a test names. */
import { DestinationPolicies } from '../../src/config/destination-policies.ts'
import { configFrom } from '../../src/config/load.ts'
import { Destination, type LiveDestination } from '../../src/queue/scheduler/destination.ts'

const POLICIES = new DestinationPolicies(configFrom({}, 'relay.example').config)

export const liveDestination = (destination: string, differs: Partial<Omit<LiveDestination, 'destination'>> = {}): LiveDestination => ({
  ...new Destination(destination, () => POLICIES).status(0),
  ...differs,
})
