import { TaskPage } from '../../tasks/task-page.tsx'

export default TaskPage
