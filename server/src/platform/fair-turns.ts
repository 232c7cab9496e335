/** The project, and its organization, for which a place is taken. */
export interface Party {
  org_id: string
  project_id: number | string
}

export interface FairTurnsOptions {
  /** Total number of places. */
  places: number
  /** Maximum for an organization: less than all, so that it cannot block the others. */
  ofOrganization: number
  /** Maximum for a project. */
  ofProject: number
  /** Maximum number of waiting requests of a project, of an organization, and in total. */
  waiting: { ofProject: number; ofOrganization: number; all: number }
}

/** The queue for places is full. */
export class TooManyWait extends Error {}

/**
 * Distributes places to organizations in turn, and among the projects of each (round-robin): a waiting caller gets a place
 * after at most one of each other organization, however many requests that has. `take` resolves with a function that
 * releases the place. It throws `TooManyWait` if the queue is full, or the reason of `signal`.
 */
export class FairTurns {
  readonly #options: FairTurnsOptions
  /** In the order of their turns: an organization that gets a place moves to the end. */
  readonly #organizations = new Map<string, Organization>()
  #taken = 0
  #waiting = 0

  constructor(options: FairTurnsOptions) {
    this.#options = options
  }

  async take({ org_id, project_id }: Party, signal: AbortSignal): Promise<() => void> {
    signal.throwIfAborted()
    const organization = this.#organizations.get(org_id) ?? {
      taken: 0,
      waiting: 0,
      projects: new Map<number | string, Project>(),
    }
    const project = organization.projects.get(project_id) ?? { taken: 0, queue: [] }
    const { ofProject, ofOrganization, all } = this.#options.waiting
    const mustWait = !this.#hasRoom(organization, project)
    if (
      mustWait &&
      (project.queue.length >= ofProject || organization.waiting >= ofOrganization || this.#waiting >= all)
    )
      throw new TooManyWait(`${this.#waiting} others wait already, ${project.queue.length} of them of this project,`)
    this.#organizations.set(org_id, organization)
    organization.projects.set(project_id, project)
    const { promise, resolve, reject } = Promise.withResolvers<void>()
    const leave = (): void => {
      project.queue.splice(project.queue.indexOf(resolve), 1)
      this.#count(organization, -1)
      this.#forget({ org_id, project_id })
      reject(signal.reason as Error)
    }
    project.queue.push(resolve)
    this.#count(organization, 1)
    signal.addEventListener('abort', leave, { once: true })
    this.#give()
    await promise
    signal.removeEventListener('abort', leave)
    return () => {
      this.#taken -= 1
      organization.taken -= 1
      project.taken -= 1
      this.#forget({ org_id, project_id })
      this.#give()
    }
  }

  #hasRoom(organization: Organization, project: Project): boolean {
    const { places, ofOrganization, ofProject } = this.#options
    return this.#taken < places && organization.taken < ofOrganization && project.taken < ofProject
  }

  /** Hands out free places in turn. */
  #give(): void {
    for (let found = this.#next(); found; found = this.#next()) {
      const { org_id, project_id, organization, project } = found
      const go = project.queue.shift()!
      this.#count(organization, -1)
      this.#taken += 1
      organization.taken += 1
      project.taken += 1
      // Both move to the end of their queues.
      this.#organizations.delete(org_id)
      this.#organizations.set(org_id, organization)
      organization.projects.delete(project_id)
      organization.projects.set(project_id, project)
      go()
    }
  }

  #next(): (Party & { organization: Organization; project: Project }) | undefined {
    for (const [org_id, organization] of this.#organizations)
      for (const [project_id, project] of organization.projects)
        if (project.queue.length > 0 && this.#hasRoom(organization, project))
          return { org_id, project_id, organization, project }
    return undefined
  }

  #count(organization: Organization, change: 1 | -1): void {
    organization.waiting += change
    this.#waiting += change
  }

  #forget({ org_id, project_id }: Party): void {
    const organization = this.#organizations.get(org_id)
    const project = organization?.projects.get(project_id)
    if (organization && project?.taken === 0 && project.queue.length === 0) organization.projects.delete(project_id)
    if (organization?.projects.size === 0) this.#organizations.delete(org_id)
  }
}

interface Organization {
  taken: number
  waiting: number
  projects: Map<number | string, Project>
}

interface Project {
  taken: number
  /** Oldest first. */
  queue: (() => void)[]
}
