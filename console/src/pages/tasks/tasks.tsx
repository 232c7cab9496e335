import { PageHeader } from '../../ui/page.tsx'

export default function TasksPage() {
  return <PageHeader title="Tasks" />
}
