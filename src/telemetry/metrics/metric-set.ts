/** The metrics of one registry, with the help texts from which docs/monitoring.md is made. */
import { Counter, Gauge, Histogram, Registry } from 'prom-client'

/** Documentation of a metric. */
export interface MetricText {
  readonly name: string
  readonly type: 'counter' | 'gauge' | 'histogram'
  readonly help: string
  readonly labels: readonly string[]
}

/** Creates the metrics of one registry and records their help texts. */
export class MetricSet {
  readonly registry = new Registry()
  readonly texts: MetricText[] = []

  counter<Label extends string = never>(name: `${string}_total`, help: string, labels: readonly Label[] = []): Counter<Label> {
    return new Counter(this.#described('counter', name, help, labels))
  }

  gauge<Label extends string = never>(name: string, help: string, labels: readonly Label[] = []): Gauge<Label> {
    return new Gauge(this.#described('gauge', name, help, labels))
  }

  histogram<Label extends string = never>(
    name: `${string}_seconds`,
    help: string,
    buckets: number[],
    labels: readonly Label[] = [],
  ): Histogram<Label> {
    return new Histogram({ ...this.#described('histogram', name, help, labels), buckets })
  }

  #described<Label extends string>(type: MetricText['type'], suffix: string, help: string, labels: readonly Label[]) {
    const name = `deferd_${suffix}`
    this.texts.push({ name, type, help, labels })
    return { name, help, labelNames: [...labels], registers: [this.registry] }
  }
}
