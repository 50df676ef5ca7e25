import { testSeeds } from './seeds.ts'

testSeeds(1, 300, 60_000)
